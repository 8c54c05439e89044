/** Publishes copies of letters, one by one: at a rate, and each until it is confirmed or refused. */
import { Broker, type BrokerError } from "@requeue/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { AuditFailed } from "./audit.ts"

/** Told of a copy on its way. */
export interface Watcher {
  /** Runs before each try. From then on, the copy may have been published. Its failure is the end. */
  readonly onTry: Effect.Effect<void, AuditFailed>
  /** Called when a try has failed and another one will follow. `isUnanswered`: the copy may have been published. */
  readonly onPause: (isUnanswered: boolean) => void
}

/** Fails when the copy is refused, or when the broker has not taken it for a minute. */
export type Publish = (
  publish: Effect.Effect<void, BrokerError.BrokerError>,
  watcher: Watcher
) => Effect.Effect<void, BrokerError.BrokerError | AuditFailed>

/** Milliseconds until a copy is tried again: each time twice as long, up to the longest. */
const pauses = { first: 1000, longest: 15_000 }

/** Milliseconds after which a sweep gives up a broker that does nothing. */
export const timeout = 60_000

/** `now` is in monotonic milliseconds; `rate` is the most tries in a second. */
export const make = (now: () => number, rate = Number.POSITIVE_INFINITY): Publish => {
  let free = Number.NEGATIVE_INFINITY
  const turn = Effect.suspend(() => {
    const at = Math.max(now(), free)
    free = at + 1000 / rate
    return at > now() ? Effect.sleep(Duration.millis(at - now())) : Effect.void
  })
  return Effect.fnUntraced(function* (publish, { onPause, onTry }) {
    let failing: number | undefined
    for (let pause = pauses.first; ; pause = Math.min(2 * pause, pauses.longest)) {
      yield* turn
      yield* onTry
      const tried = yield* Effect.result(publish)
      if (Result.isSuccess(tried)) return
      failing ??= now()
      const fate = Broker.fateOf(tried.failure)
      if (fate === "refused" || now() - failing >= timeout) return yield* tried.failure
      onPause(fate === "unknown")
      yield* Effect.sleep(Duration.millis(pause))
    }
  })
}
