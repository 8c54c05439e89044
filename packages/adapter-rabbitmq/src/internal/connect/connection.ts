/**
 * A connection that is made again for ever. Each connection is a generation of its own: what was opened on one is never
 * used on another.
 */
import { BrokerError, type Connection } from "@requeue/core/adapter-kit"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Clock from "effect/Clock"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as Address from "../address.ts"
import * as Client from "../client.ts"
import { persist } from "./persist.ts"
import { timedOut } from "./request.ts"
import { type Context, toBrokerError } from "../toBrokerError.ts"

/** One connection, from its opening to its end. */
export interface Live {
  readonly connection: Client.Connection
  /** Done when the connection is gone. */
  readonly gone: Deferred.Deferred<void>
  readonly isGone: () => boolean
  readonly state: () => Connection.Connection
  /** Closed while the server blocks publishers because of an alarm. */
  readonly unblocked: Latch.Latch
  readonly blockedBy: () => string | undefined
}

export interface Link {
  /** The connection, as soon as there is one. */
  readonly live: Effect.Effect<Live>
  /** The connection, or an error after a time. */
  readonly within: (context: Context, millis: number) => Effect.Effect<Live, BrokerError.BrokerError>
  readonly current: () => Live | undefined
  readonly state: () => Connection.Connection
}

/** A connection that lived so long was a good one, in milliseconds: its end is answered at once. */
const healthy = 1000

const goodbye = Duration.seconds(2)

const open = (
  settings: Settings,
  address: Address.Address,
  role: string
): Effect.Effect<Live, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const gone = Deferred.makeUnsafe<void>()
    const unblocked = yield* Latch.make(true)
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    let state: Connection.Connection | undefined
    let blockedBy: string | undefined
    const connection = yield* Effect.tryPromise({
      try: () =>
        Client.connect(settings, address, role, {
          closed: () => {
            state = { state: "down", since: now() }
            Deferred.doneUnsafe(gone, Exit.void)
            unblocked.openUnsafe()
          },
          blocked: (reason) => {
            blockedBy = reason
            unblocked.closeUnsafe()
          },
          unblocked: () => {
            blockedBy = undefined
            unblocked.openUnsafe()
          }
        }),
      catch: (cause) => {
        return toBrokerError(cause, { operation: "connect", vhost: settings.address.vhost }, "ConnectionFailed")
      }
    })
    const opened: Connection.Connection = { state: "up", since: now() }
    return {
      connection,
      gone,
      isGone: () => state !== undefined,
      state: () => state ?? opened,
      unblocked,
      blockedBy: () => blockedBy
    }
  })

const close = ({ connection, isGone }: Live): Effect.Effect<void> =>
  Effect.suspend(() =>
    isGone()
      ? Effect.void
      : Effect.tryPromise(() => connection.close()).pipe(
          Effect.timeout(goodbye),
          Effect.ignore,
          Effect.ensuring(Effect.sync(connection.destroy))
        )
  )

/** Fails when the first connection cannot be made; from then on it never fails. */
export const make = (settings: Settings, role: string): Effect.Effect<Link, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const nodes = [settings.address, ...settings.hosts.map((text) => Address.node(text, settings.address))]
    let turn = 0
    /** The node that was good last, and after a failure the next one. */
    const connect = Effect.suspend(() =>
      Effect.tapError(open(settings, nodes[turn % nodes.length]!, role), () => Effect.sync(() => turn++))
    )
    const first = yield* Effect.acquireRelease(Effect.retry(connect, { times: nodes.length - 1 }), close)
    let current: Live | undefined = first
    let last = first
    let next = Deferred.makeUnsafe<Live>()

    const keep = Effect.gen(function* () {
      let attempt = 0
      while (true) {
        const born = yield* Clock.currentTimeMillis
        yield* Deferred.await(current!.gone)
        current = undefined
        attempt = (yield* Clock.currentTimeMillis) - born < healthy ? attempt + 1 : 0
        last = yield* persist(connect, { attempt, settings, complaint: "not connected", about: { role } })
        current = last
        yield* Effect.annotateLogs(Effect.logInfo("connected again"), { role })
        Deferred.doneUnsafe(next, Exit.succeed(current))
        next = Deferred.makeUnsafe<Live>()
      }
    })
    yield* Effect.forkScoped(keep)
    yield* Effect.addFinalizer(() => (current === undefined || current === first ? Effect.void : close(current)))

    const live = Effect.suspend(() =>
      current !== undefined && !current.isGone() ? Effect.succeed(current) : Deferred.await(next)
    )
    return {
      live,
      within: (context, millis) =>
        Effect.timeoutOrElse(live, {
          duration: Duration.millis(millis),
          orElse: () =>
            Effect.fail(
              new BrokerError.BrokerError({
                broker: "rabbitmq",
                ...context,
                reason: "ConnectionFailed",
                detail: timedOut(context, millis).detail.split(";")[0]!
              })
            )
        }),
      current: () => (current?.isGone() === false ? current : undefined),
      state: () => last.state()
    }
  })
