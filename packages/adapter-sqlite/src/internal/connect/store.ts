/** The parts of a broker that work on its file: transactions, reads, and the consumers to wake. */
import { BrokerError, type Connection as State, Random, Timers } from "@requeue/core/port"
import { Wakeups } from "@requeue/kit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { memory, type Settings } from "../../SqliteOptions.ts"
import type { Driver } from "../client.ts"
import type { Context } from "../toBrokerError.ts"
import * as Checkpointing from "./checkpointing.ts"
import type { Connection } from "./connection.ts"
import * as File from "./file.ts"
import * as Flushing from "./flushing.ts"
import { tokens } from "./schema.ts"
import * as Transactions from "./transactions.ts"
import { vacuum } from "./vacuum.ts"

/** A consumer that waits for messages. */
interface Sleeper {
  readonly wake: () => void
  /** Whether it could lease more messages. */
  readonly hasCredit: () => boolean
  /** Whether messages wait for a place in their shares. */
  readonly isHeldUp: () => boolean
}

/** The tools that every part of the adapter shares. */
export interface Store
  extends Pick<Transactions.Transactions, "add">, Pick<File.File, "reopen" | "generation" | "isAt"> {
  readonly settings: Settings
  readonly timers: Timers.Timers
  /** Epoch milliseconds, with fractions. */
  readonly now: () => number
  /** Returns when a lease ends that begins now, in whole epoch milliseconds. */
  readonly leaseEnd: () => number
  /** Returns the token of the next claim. */
  readonly nextToken: () => number
  /** Returns the open file, or throws why it is not open. */
  readonly connected: () => Connection
  /** Connections of the program that are of this file. */
  readonly checked: WeakSet<object>
  readonly onWake: Wakeups.Wakeups<Sleeper>["add"]
  /** Wakes the consumers of a queue, or some of them. `undefined`: those of all queues. */
  readonly wake: (queue?: string, which?: (sleeper: Sleeper) => boolean) => void
  /** Keeps the process alive until the scope closes. */
  readonly keepAlive: Effect.Effect<unknown, never, Scope.Scope>
  /** Reads outside of the transactions. It waits for a lock as they do. */
  readonly read: <A>(context: Context, run: (connection: Connection) => A) => Effect.Effect<A, BrokerError.BrokerError>
}

/** Opens the file, and closes it with the scope. */
export const make = (
  settings: Settings,
  driver: Driver,
  onState: State.Tracker["set"]
): Effect.Effect<Store, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { durability, lease, path, timeout } = settings
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const timers = yield* Timers.make
    let token = Math.floor(tokens.least + (yield* Random.next) * (tokens.most - tokens.least))
    const consumers = Wakeups.make<Sleeper>()
    const wake: Store["wake"] = (queue, which = () => true) => {
      for (const each of consumers.of(queue)) if (which(each)) each.wake()
    }
    // Without syncs, SQLite's own checkpoints wait for nothing.
    const log = path !== memory && durability !== "off" ? driver.log(path) : undefined
    const flush = log && Flushing.make(log, timers, timeout)
    let closed = Promise.resolve()
    const file = yield* File.make({
      settings,
      driver,
      timers,
      // Separate, because a simulation makes beats rare: the other timers must not wait for them.
      beats: yield* Timers.make,
      onState,
      onChange: () => wake(),
      isAwaited: () => [...consumers.of()].some(({ hasCredit }) => hasCredit()),
      onBeat: (connection) => vacuum(connection, transactions.add),
      onClose: () => {
        if (log !== undefined) closed = log.close()
      }
    })
    const transactions = Transactions.make({
      connection: file.current,
      timers,
      settings,
      soon: driver.soon,
      flush: durability === "normal" ? flush && Flushing.later(flush, timers) : flush,
      onCommit: log && Checkpointing.make(log, timers)
    })
    yield* Effect.addFinalizer(() =>
      Effect.promise(() => {
        transactions.close()
        file.close()
        return closed
      })
    )

    const connected = (): Connection => {
      const connection = file.current(true)
      if (connection instanceof BrokerError.BrokerError) throw connection
      return connection
    }

    return {
      add: transactions.add,
      wake,
      onWake: consumers.add,
      keepAlive: Effect.acquireRelease(Effect.sync(driver.keepAlive), (end) => Effect.sync(end)),
      settings,
      timers,
      now,
      nextToken: () => (token = token === tokens.most ? tokens.least : token + 1),
      leaseEnd: () => Math.ceil(now() + lease),
      connected,
      checked: new WeakSet(),
      read: (context, run) => File.unlocked(() => run(connected()), context, timers, timeout),
      reopen: file.reopen,
      generation: file.generation,
      isAt: file.isAt
    }
  })
