import type { Suite } from "../Suite.ts"

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
        { name: "a call", contender: "micro/core", workload: "call" },
        { name: "policy decision", contender: "micro/core", workload: "decision" },
        { name: "batch of ten", contender: "micro/core", workload: "finalisation" }
      ]
    }
  ]
}
