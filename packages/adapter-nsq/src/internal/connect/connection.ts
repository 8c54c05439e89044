/** Opens a connection to an nsqd within a time limit, and reconnects whenever it is lost. */
import { type BrokerError, Delay } from "@requeue/core/port"
import { Reconnecting } from "@requeue/kit"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../NsqOptions.ts"
import type * as Driver from "../driver.ts"
import type { ConnectionCount } from "./connectionCount.ts"
import { type ErrorContext, toBrokerError } from "../toBrokerError.ts"

/** One connection, from its opening to its end. */
export interface Live {
  readonly connection: Driver.Connection
  /** Done when the connection is gone. */
  readonly gone: Deferred.Deferred<void>
}

/** A connection that always reconnects. `tried` fails with the error of the first attempt. */
export type KeptConnection<A extends Live> = Reconnecting.Reconnecting<A, BrokerError.BrokerError>

/** Heartbeats that nsqd may miss in a row before its connection counts as dead. */
const missedHeartbeats = 2.5

/**
 * Opens a connection. After `connectTimeout` fails with `ConnectionFailed` and aborts the signal; a connection that
 * opens later is destroyed.
 */
export const open = <C extends Driver.Connection>(
  context: ErrorContext,
  { connectTimeout }: Settings,
  connect: (signal: AbortSignal) => Promise<C>
): Effect.Effect<C, BrokerError.BrokerError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const connection = await connect(signal)
      if (signal.aborted) connection.destroy()
      return connection
    },
    catch: (cause) => toBrokerError(cause, context, "ConnectionFailed")
  }).pipe(
    Effect.timeoutOrElse({
      duration: Duration.millis(connectTimeout),
      orElse: () => {
        const late = new Error(`no answer within ${Delay.format(connectTimeout)}`)
        return Effect.fail(toBrokerError(late, context, "ConnectionFailed"))
      }
    })
  )

/** Destroys a connection without heartbeats: a network can drop connections silently. */
const watchHeartbeats = ({ connection }: Live, { heartbeat }: Settings): Effect.Effect<never> =>
  Effect.gen(function* () {
    const timeout = missedHeartbeats * heartbeat
    while (true) {
      const before = connection.heard()
      yield* Effect.sleep(Duration.millis(timeout))
      if (connection.heard() !== before) continue
      connection.destroy(new Error(`nothing was heard for ${Delay.format(timeout)}`))
    }
  })

/** Keeps and counts a connection until the scope closes. Never fails; `tried` has the result of the first attempt. */
export const make = <A extends Live>(
  settings: Settings,
  count: ConnectionCount,
  options: Pick<Reconnecting.Options<A, BrokerError.BrokerError>, "connect" | "annotations" | "onChange">
): Effect.Effect<KeptConnection<A>, never, Scope.Scope> =>
  Reconnecting.make({
    ...options,
    connect: Effect.tapError(options.connect, (error) => Effect.sync(() => count.failed(error))),
    onChange: (connection) => {
      count.changed(connection)
      options.onChange?.(connection)
    },
    isOpen: ({ connection }) => connection.isOpen(),
    ended: (live) => Effect.raceFirst(Deferred.await(live.gone), watchHeartbeats(live, settings)),
    close: ({ connection }) => Effect.sync(() => connection.destroy()),
    pauses: { first: settings.reconnectFirst, max: settings.reconnectMax }
  })
