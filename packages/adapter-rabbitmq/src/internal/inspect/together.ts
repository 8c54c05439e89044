/** Questions that many ask at the same time, as those for what all queues of a prefix share. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/** Asks once for all who want the same while the answer is on its way. */
export const make = <A, E>(ask: (name: string) => Effect.Effect<A, E>): ((name: string) => Effect.Effect<A, E>) => {
  const asked = new Map<string, Fiber.Fiber<A, E>>()
  return (name) =>
    Effect.gen(function* () {
      const answered = Effect.sync(() => void asked.delete(name))
      const fiber = asked.get(name) ?? (yield* Effect.forkDetach(Effect.ensuring(ask(name), answered)))
      asked.set(name, fiber)
      return yield* Fiber.join(fiber)
    })
}
