/** Shares one request among concurrent callers, such as requests about what all queues of a prefix share. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

interface Asked<A, E> {
  readonly fiber: Fiber.Fiber<A, E>
  /** Whether the request was sent. Its response may not include later changes. */
  isBegun: boolean
  /** When the response arrived, in monotonic milliseconds; `undefined` before. */
  at: number | undefined
}

const monotonic = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

/**
 * Sends one request for all callers that arrive before it is sent. Later callers share the next request, which starts when the first
 * is answered. With `fresh`, a pending response is accepted too, and one that arrived at most this many milliseconds ago.
 */
export const make = <A, E>(
  ask: (name: string) => Effect.Effect<A, E>,
  fresh = 0
): ((name: string) => Effect.Effect<A, E>) => {
  const all = new Map<string, Asked<A, E>>()
  const isGood = ({ at, isBegun }: Asked<A, E>, now: number): boolean =>
    fresh === 0 ? !isBegun : at === undefined || at > now - fresh
  return (name) =>
    Effect.gen(function* () {
      const now = yield* monotonic
      const last = all.get(name)
      if (last !== undefined && isGood(last, now)) return yield* Fiber.join(last.fiber)
      const begin = Effect.suspend(() => {
        asked.isBegun = true
        return ask(name)
      })
      const answered = Effect.map(monotonic, (at) => {
        asked.at = at
        if (fresh === 0 && all.get(name) === asked) all.delete(name)
      })
      const before = last === undefined ? Effect.yieldNow : Fiber.await(last.fiber)
      const fiber = yield* Effect.forkDetach(Effect.ensuring(Effect.andThen(before, begin), answered))
      const asked: Asked<A, E> = { fiber, isBegun: false, at: undefined }
      all.set(name, asked)
      return yield* Fiber.join(fiber)
    })
}
