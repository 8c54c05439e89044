/**
 * A connection that is made again for ever. Each connection is a generation of its own: what was opened on one is never
 * used on another.
 */
import { type BrokerError, Delay, Reconnect } from "@requeue/core/adapter-kit"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../NsqOptions.ts"
import type * as Client from "../client.ts"
import type { Presence } from "./connectionCount.ts"
import { type Context, toBrokerError } from "../toBrokerError.ts"

/** One connection, from its opening to its end. */
export interface Live {
  readonly connection: Client.Connection
  /** Done when the connection is gone. */
  readonly gone: Deferred.Deferred<void>
}

export interface Link<A extends Live> {
  readonly current: () => A | undefined
  /** The connection, as soon as there is one. */
  readonly live: Effect.Effect<A>
  /** Ends with the first attempt to connect; answers why it failed. */
  readonly tried: Effect.Effect<BrokerError.BrokerError | undefined>
}

/** A connection that lived so long was a good one, in milliseconds: its end is answered at once. */
const healthy = 1000

/** Heartbeats that a connection may miss before it counts as dead. */
const patience = 2.5

const pause = (failures: number, { reconnectFirst, reconnectMax }: Settings): Effect.Effect<void> =>
  failures === 0
    ? Effect.void
    : Effect.flatMap(Random.next, (random) =>
        Effect.sleep(Reconnect.pause(failures, random, { first: reconnectFirst, max: reconnectMax }))
      )

/** Runs what opens a connection, with a time limit. Whoever does not wait any longer does not leave it open. */
export const opening = <C extends Client.Connection>(
  context: Context,
  { connectTimeout }: Settings,
  open: (signal: AbortSignal) => Promise<C>
): Effect.Effect<C, BrokerError.BrokerError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const connection = await open(signal)
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

/** Ends a connection on which nothing is heard: nsqd sends heartbeats, and the network loses connections silently. */
const watch = ({ connection }: Live, { heartbeat }: Settings): Effect.Effect<never> =>
  Effect.gen(function* () {
    while (true) {
      const before = connection.heard()
      yield* Effect.sleep(Duration.millis(patience * heartbeat))
      if (connection.heard() !== before) continue
      connection.destroy(new Error(`nothing was heard for ${Delay.format(patience * heartbeat)}`))
    }
  })

/** Lives as long as the scope. */
export const make = <A extends Live>(
  name: Readonly<Record<string, string>>,
  connect: Effect.Effect<A, BrokerError.BrokerError>,
  settings: Settings,
  presence: Presence
): Effect.Effect<Link<A>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const tried = Deferred.makeUnsafe<BrokerError.BrokerError | undefined>()
    let current: A | undefined
    let next = Deferred.makeUnsafe<A>()

    const tell = (error: BrokerError.BrokerError, attempt: number): Effect.Effect<void> =>
      Reconnect.isTold(attempt)
        ? Effect.annotateLogs(Effect.logWarning("not connected"), { ...name, attempt, error: error.message })
        : Effect.void

    const keep = Effect.gen(function* () {
      let attempt = 0
      while (true) {
        yield* pause(attempt, settings)
        const opened = yield* Effect.result(connect)
        if (Result.isFailure(opened)) {
          Deferred.doneUnsafe(tried, Exit.succeed(opened.failure))
          yield* tell(opened.failure, attempt++)
          continue
        }
        const live = opened.success
        if (attempt > 0) yield* Effect.annotateLogs(Effect.logInfo("connected again"), name)
        const born = yield* Clock.currentTimeMillis
        current = live
        presence.gained()
        Deferred.doneUnsafe(tried, Exit.succeed(undefined))
        Deferred.doneUnsafe(next, Exit.succeed(live))
        next = Deferred.makeUnsafe<A>()
        yield* Effect.raceFirst(Deferred.await(live.gone), watch(live, settings))
        current = undefined
        presence.lost()
        attempt = (yield* Clock.currentTimeMillis) - born < healthy ? attempt + 1 : 0
      }
    })
    // Runs when nobody connects again any more.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        if (current === undefined) return
        current.connection.destroy()
        presence.lost()
      })
    )
    yield* Effect.forkScoped(keep)
    /** What has closed is none, though its end is still to be acted on. */
    const open = (): A | undefined => (current?.connection.isOpen() === true ? current : undefined)
    return {
      current: open,
      live: Effect.suspend(() => {
        const live = open()
        return live === undefined ? Deferred.await(next) : Effect.succeed(live)
      }),
      tried: Deferred.await(tried)
    }
  })
