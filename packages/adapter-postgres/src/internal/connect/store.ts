/** The parts of a broker that work on its database: lanes, wake-ups, and the tools that every other part needs. */
import { type BrokerError, type Connection, Timers } from "@requeue/core/port"
import { Wakeups } from "@requeue/kit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../PostgresOptions.ts"
import type { Driver, Session } from "../client.ts"
import * as Statements from "../statements.ts"
import { type Context, toBrokerError } from "../toBrokerError.ts"
import * as Connections from "./connections.ts"
import * as Expiry from "./expiry.ts"
import * as Gather from "./gather.ts"
import type { Lane } from "./lane.ts"
import * as Notifier from "./notifier.ts"
import * as Schema from "./schema.ts"

/** Wakes a consumer. `from` is when its first message is due, in epoch milliseconds of the server; `undefined`: unknown. */
type Wake = (from: number | undefined) => void

/** The tools that every part of the adapter shares. */
export interface Store {
  readonly settings: Settings
  readonly statements: Statements.Statements
  readonly timers: Timers.Timers
  /** Epoch milliseconds of this machine, for metadata only. */
  readonly now: () => number
  /** Names the schema, see `Checked`. */
  readonly id: string
  readonly lanes: Readonly<Record<"publish" | "settle" | "claim" | "inspect", Lane>>
  /** Gathers calls on a lane. */
  readonly gather: <I, A>(
    lane: Lane,
    maxWeight: number,
    run: (session: Session, items: ReadonlyArray<I>) => Promise<ReadonlyArray<A>>
  ) => Gather.Add<I, A>
  /** Creates missing queues. */
  readonly declareAll: Gather.Add<ReadonlyArray<string>, void>
  /** Wakes the consumers of a queue in all processes. `from` is when its first message is due. */
  readonly wake: (queue: string, from: number) => void
  readonly onWake: Wakeups.Wakeups<Wake>["add"]
  /** Starts to listen and to end leases, which consumers need. */
  readonly serve: () => void
  /** Runs a call on the lane for operators, which may take long. */
  readonly read: <A>(
    context: Context,
    run: (session: Session) => Promise<A>
  ) => Effect.Effect<A, BrokerError.BrokerError>
  /** Names the database, its server and the schema. */
  readonly identity: Effect.Effect<string, BrokerError.BrokerError>
  /** Connections and transactions of the program that use this database. */
  readonly checked: WeakSet<object>
}

/** Opens the first connection, and checks the tables. */
const first = (settings: Settings, driver: Driver, statements: Statements.Statements, timers: Timers.Timers) =>
  Effect.gen(function* () {
    const session = yield* Connections.connect(settings, driver)
    const checked = yield* Effect.tryPromise({
      try: () =>
        Gather.limited(Schema.check(session, statements, settings), session, { timers, timeout: settings.timeout }),
      catch: (cause) => {
        void session.close().catch(() => undefined)
        return toBrokerError(cause, { operation: "open" })
      }
    })
    return { session, id: checked.id }
  })

/** Connects, and ends all connections with the scope. */
export const make = (
  settings: Settings,
  driver: Driver,
  onState: Connection.Tracker["set"]
): Effect.Effect<Store, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const timers = yield* Timers.make
    const statements = Statements.make(settings.schema)
    const { timeout } = settings
    const consumers = Wakeups.make<Wake>()
    const wakeHere = (queue?: string, from?: number): void => {
      for (const each of consumers.of(queue)) each(from)
    }
    const { id, session } = yield* first(settings, driver, statements, timers)
    const connections = Connections.make({ settings, driver, timers, onState })
    const lanes = {
      publish: yield* connections({ name: "publish", initial: session }),
      settle: yield* connections({ name: "settle" }),
      claim: yield* connections({ name: "claim" }),
      inspect: yield* connections({ name: "inspect" })
    }
    const notifier = yield* Notifier.make({ settings, statements, timers, connections, wake: wakeHere })
    const wake: Store["wake"] = (queue, from) => {
      wakeHere(queue, from)
      notifier.notify([queue, from])
    }
    const expire = Expiry.make({ lane: lanes.claim, statements, timers, timeout, wake })
    const gather: Store["gather"] = (lane, maxWeight, run) => Gather.make({ lane, maxWeight, run, timers, timeout })

    const read: Store["read"] = <A>(context: Context, run: (session: Session) => Promise<A>) =>
      Effect.callback<A, BrokerError.BrokerError>((resume) => {
        const add = gather<void, A>(lanes.inspect, 0, async (on) => [await run(on)])
        add(undefined, 1, context, (error, result) => {
          if (error !== undefined) return resume(Effect.fail(error))
          resume(Effect.succeed(result as A)) // It has run.
        })
      })

    return {
      settings,
      statements,
      timers,
      now: () => clock.currentTimeMillisUnsafe(),
      id,
      lanes,
      gather,
      declareAll: Gather.make({
        lane: lanes.settle,
        timers,
        timeout,
        maxWeight: 100,
        isRepeatable: true,
        run: async (session, names) => {
          await session.query(statements.declare, [names.flat()])
          return []
        }
      }),
      wake,
      onWake: consumers.add,
      serve: () => {
        notifier.listen()
        expire()
      },
      read,
      identity: yield* Effect.cached(
        Effect.map(
          read({ operation: "within" }, (session) => session.query(statements.identity, [])),
          ([row]) => String(row)
        )
      ),
      checked: new WeakSet()
    }
  })
