/** Supports browsing of dead letters: a note about its cost, and its progress. */
import { Broker } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { Output } from "./Output.ts"

/** The largest number of letters to browse. */
export const limit = 100_000

/** Prints a note before browsing if there are letters, and the broker counts browsing as a delivery. */
export const tellCost = Effect.fnUntraced(function* (all: ReadonlyArray<DeadLetters.DeadLetters>) {
  const { capabilities } = yield* Broker.Broker
  if (capabilities.uncountedBrowse) return
  const counts = yield* Effect.forEach(all, ({ count }) => count)
  if (counts.every((count) => count === 0)) return
  const { note } = yield* Output
  yield* note(
    `${capabilities.broker} counts browsing as a delivery of each letter, and hides the letters from other readers until it ends`
  )
})

/** Makes a callback that shows the progress of browsing on a terminal. */
export const progress = (queue: string) =>
  Effect.map(Output, (output) => ({ browsed, total }: DeadLetters.Progress): void => {
    const of = total === undefined ? "" : ` of ${total}`
    Effect.runFork(output.progress(`${queue}: browsed ${browsed}${of}`))
  })
