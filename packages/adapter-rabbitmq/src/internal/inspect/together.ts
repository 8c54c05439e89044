/** Questions that many ask at the same time, as those for what all queues of a prefix share. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

interface Asked<A, E> {
  readonly fiber: Fiber.Fiber<A, E>
  /** When the answer came, in milliseconds since the epoch; `undefined` while it is on its way. */
  at: number | undefined
}

/** Asks once for all who want the same while the answer is on its way, or `fresh` milliseconds after it came. */
export const make = <A, E>(
  ask: (name: string) => Effect.Effect<A, E>,
  fresh = 0
): ((name: string) => Effect.Effect<A, E>) => {
  const all = new Map<string, Asked<A, E>>()
  return (name) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const last = all.get(name)
      if (last !== undefined && (last.at === undefined || last.at > now - fresh)) return yield* Fiber.join(last.fiber)
      const answered = Effect.map(Clock.currentTimeMillis, (at) => {
        asked.at = at
        if (fresh === 0) all.delete(name)
      })
      const fiber = yield* Effect.forkDetach(Effect.ensuring(ask(name), answered))
      const asked: Asked<A, E> = { fiber, at: undefined }
      all.set(name, asked)
      return yield* Fiber.join(fiber)
    })
}
