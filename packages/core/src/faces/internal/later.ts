/**
 * The modules that a connection loads with the first call that needs them: consumers and the calls on dead letters are two
 * thirds of the code, and a program that sends needs neither. Options are checked by modules that are there at once.
 */
import * as Effect from "effect/Effect"

export const consumer = Effect.promise(() => import("../../consume/Consumer.ts"))

export const puller = Effect.promise(() => import("../../consume/Puller.ts"))

/** The calls on the dead letters of a queue. */
export const deadLetters = (queue: string) =>
  Effect.flatMap(
    Effect.promise(() => import("../../dead-letters/DeadLetters.ts")),
    ({ make }) => make(queue)
  )
