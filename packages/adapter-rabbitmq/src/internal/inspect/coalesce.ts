/** Questions that many ask at the same time, as those for what all queues of a prefix share. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

interface Asked<A, E> {
  readonly fiber: Fiber.Fiber<A, E>
  /** Whether the question is on its way: what happens from now on may not be in its answer. */
  isBegun: boolean
  /** When the answer came, in monotonic milliseconds; `undefined` before. */
  at: number | undefined
}

const monotonic = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

/**
 * Asks once for all who want the same before the question is on its way; who comes later shares the next one, which begins
 * when that is answered. With `fresh`, an answer that is on its way, or came so many milliseconds ago, is good as well.
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
