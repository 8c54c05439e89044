/** A clock that a test moves: that of the adapter and the core, and with it the server's. */
import type { StrictSqs } from "@requeue/brokers"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { setTimeout as wait } from "node:timers/promises"

export interface Moved {
  /** Milliseconds since the epoch, by the moved clock. */
  readonly now: () => number
  readonly forward: (milliseconds: number) => Promise<void>
  /** Runs a program by the moved clock; its sleeps end when it is moved beyond their end. */
  readonly run: <A, E, R>(program: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const movedWith = (proxy: StrictSqs): Moved => {
  let ahead = 0
  let move = Promise.withResolvers<void>()
  const now = () => Date.now() + ahead
  const elapsed = () => performance.now() + ahead
  const nanos = (millis: number) => BigInt(Math.round(millis * 1e6))

  const sleep = async (millis: number, signal: AbortSignal): Promise<void> => {
    const end = elapsed() + millis
    while (elapsed() < end && !signal.aborted) {
      const slept = wait(Math.ceil(end - elapsed()), undefined, { signal, ref: false }).catch(() => {})
      await Promise.race([slept, move.promise])
    }
  }

  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: () => nanos(now()),
    currentTimeNanos: Effect.sync(() => nanos(now())),
    monotonicTimeNanosUnsafe: () => nanos(elapsed()),
    monotonicTimeNanos: Effect.sync(() => nanos(elapsed())),
    sleep: (duration) => Effect.promise((signal) => sleep(Duration.toMillis(duration), signal))
  }

  return {
    now,
    // Ours first: what the server then hands out is not before its time.
    forward: async (milliseconds) => {
      ahead += milliseconds
      move.resolve()
      move = Promise.withResolvers()
      await proxy.forward(milliseconds)
    },
    run: Effect.provideService(Clock.Clock, clock)
  }
}
