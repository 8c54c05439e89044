/** Looks at dead letters: what they cost is told before, and how far they are meanwhile. */
import { Broker } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { Output } from "./Output.ts"

/** The most letters that a look goes through. */
export const limit = 100_000

/** Tells, where there are letters, that the broker counts a look. */
export const tellCost = Effect.fnUntraced(function* (all: ReadonlyArray<DeadLetters.DeadLetters>) {
  const { capabilities } = yield* Broker.Broker
  if (capabilities.uncountedBrowse) return
  const counts = yield* Effect.forEach(all, ({ count }) => count)
  if (counts.every((count) => count === 0)) return
  const { note } = yield* Output
  yield* note(
    `${capabilities.broker} counts a look as a delivery of each letter, and gives them to nobody else until it ends`
  )
})

/** A callback that shows on a terminal how far a look is. */
export const progress = (queue: string) =>
  Effect.map(Output, (output) => ({ browsed, total }: DeadLetters.Progress): void => {
    const of = total === undefined ? "" : ` of ${total}`
    Effect.runFork(output.progress(`${queue}: looked at ${browsed}${of}`))
  })
