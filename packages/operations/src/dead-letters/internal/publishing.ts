/** Publishes copies of letters, one by one: at a rate, and each until it is confirmed or refused. */
import { Broker, type BrokerError } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"

/** Milliseconds before a call is repeated. The pause doubles each time, up to the longest. */
const pauses = { first: 1000, longest: 15_000 }

/** Milliseconds after which a sweep fails if the broker does nothing. */
export const timeout = 60_000

/** Whether a sweep is ending: no further call begins. */
export interface Ending {
  readonly begin: () => void
  readonly hasBegun: () => boolean
  /** Sleeps, or is interrupted if the sweep is ending. */
  readonly sleep: (millis: number) => Effect.Effect<void>
}

export const ending = (): Ending => {
  const over = Deferred.makeUnsafe<void>()
  let hasBegun = false
  const ended = Effect.andThen(Deferred.await(over), Effect.interrupt)
  return {
    begin: () => {
      hasBegun = true
      Deferred.doneUnsafe(over, Exit.void)
    },
    hasBegun: () => hasBegun,
    sleep: (millis) =>
      Effect.suspend(() =>
        hasBegun ? Effect.interrupt : Effect.raceFirst(Effect.sleep(Duration.millis(millis)), ended)
      )
  }
}

/**
 * Returns the next pause between two tries of one call, in milliseconds; `undefined` once the call has failed for a minute.
 */
export const retries = (now: () => number): (() => number | undefined) => {
  const begun = now()
  let pause = pauses.first / 2
  return () => (now() - begun >= timeout ? undefined : (pause = Math.min(2 * pause, pauses.longest)))
}

/** Whether a browser has lost its letters to consumers: its next call reopens the queue, and shows its letters again. */
export const isLoss = ({ reason }: BrokerError.BrokerError): boolean =>
  reason === "ConnectionLost" || reason === "LeaseLost"

/** Like {@link retries}, but starts again if `progress` has grown since the last failure. */
export const retriesUntilProgress = (now: () => number, progress: () => number): (() => number | undefined) => {
  let before = progress()
  let next: ReturnType<typeof retries> | undefined
  return () => {
    const current = progress()
    if (current > before) next = undefined
    before = current
    next ??= retries(now)
    return next()
  }
}

/** Publishes one copy. `onUnanswered` is called if the copy may exist, though no answer arrived. */
export type Publish = (
  publish: Effect.Effect<void, BrokerError.BrokerError>,
  onUnanswered: () => void
) => Effect.Effect<void, BrokerError.BrokerError>

/**
 * Makes a {@link Publish} that fails if the copy is refused, or if the broker has not accepted it within a minute. `now` is
 * in monotonic milliseconds; `rate` is the largest number of tries in a second.
 */
export const make = (now: () => number, end: Ending, rate = Number.POSITIVE_INFINITY): Publish => {
  let free = Number.NEGATIVE_INFINITY
  const turn = Effect.suspend(() => {
    const at = Math.max(now(), free)
    free = at + 1000 / rate
    if (end.hasBegun()) return Effect.interrupt
    return at > now() ? end.sleep(at - now()) : Effect.void
  })
  return Effect.fnUntraced(function* (publish, onUnanswered) {
    let next: ReturnType<typeof retries> | undefined
    while (true) {
      yield* turn
      const tried = yield* Effect.result(Effect.onInterrupt(publish, () => Effect.sync(onUnanswered)))
      if (Result.isSuccess(tried)) return
      next ??= retries(now)
      const fate = Broker.fateOf(tried.failure)
      const pause = fate === "rejected" ? undefined : next()
      if (pause === undefined) return yield* tried.failure
      if (fate === "unknown") onUnanswered()
      yield* end.sleep(pause)
    }
  })
}
