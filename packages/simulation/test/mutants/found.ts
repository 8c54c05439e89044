/** Defects that the simulation found, or that a review had found before it, as they were: each is put back in one place. */
import type { Mutant } from "./Mutant.ts"

const consume = (file: string): string => `core/src/consume/internal/${file}.ts`
const lifecycle = "core/src/consume/Lifecycle.ts"

export const found: ReadonlyArray<Mutant> = [
  {
    name: "a retry is asked again though its message has come again",
    file: lifecycle,
    from: 'fate === "lost" || life.history.redelivery === "separate"',
    to: 'fate === "lost"',
    was: "A retry was asked up to ten times, and each time a copy of it was stored."
  },
  {
    name: "a redelivery makes the answer to an extension one that nobody asked for",
    file: consume("settler"),
    from: "call(options, asked, extended,",
    to: "call(options, unsettled, extended,",
    was: "Leases that had ended went unnoticed where one of them was extended while its message came again."
  },
  {
    name: "a delivery that was overtaken by a later one takes its place",
    file: lifecycle,
    from: "if (!(context.isBound && history.isLost) && delivery.attempts < brokerAttempts(life)) return { life, effects: none }",
    to: "",
    was: "A later delivery was left unsettled, and its message came again after its lease."
  }
]
