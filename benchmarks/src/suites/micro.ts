import { entries } from "../Contender.ts"
import type { Suite } from "../Suite.ts"

const of = entries("micro")

export const micro: Suite = {
  name: "micro",
  summary: "one policy decision, and the verdicts of one batch of ten, against a function call",
  byDefault: true,
  venue: undefined,
  rounds: 5,
  cases: (size) => [
    {
      name: "decisions",
      messages: size(5_000_000),
      warmUp: size(500_000),
      job: {},
      entries: [
        of("call", "core", "a call"),
        of("decision", "core", "policy decision"),
        of("finalisation", "core", "batch of ten")
      ]
    }
  ]
}
