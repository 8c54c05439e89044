/** Scenarios of operators who redrive dead letters while something fails. */
import { familyOf, type Scenario } from "../Scenario.ts"
import type * as Draw from "../world/Draw.ts"
import { alone, calm, burst, each } from "./Shapes.ts"

type Random = Draw.Sequence

/** Dead letters, which an operator redrives now and then. */
const letters = (scenario: Scenario, random: Random, redrives: number): Scenario => ({
  ...scenario,
  versions: each(scenario, { maxAttempts: 1, immediate: 0, deadLetter: "work.dlq", consumerBackoff: undefined }),
  processes: alone(scenario),
  sendings: burst(random.whole(3, 9), 500, { throws: random.pick(["error", "permanent"]) }, redrives),
  refusals: [],
  operations: Array.from({ length: redrives }, (_, nth) => ({
    at: 8000 + nth * 60_000,
    what: { _tag: "Redrive", queue: "work.dlq", limit: undefined, odd: false }
  })),
  calmAt: redrives * 60_000
})

/** The operators' connection to the broker is bad. */
export const troubled = (scenario: Scenario, random: Random): Scenario => {
  const places = {
    push: ["operator", "operator consume", "operator publish"],
    lease: ["operator", "operator receive", "operator remove", "operator send"],
    lossy: ["operator", "operator consume", "operator publish"],
    store: ["operator", "operator receive", "operator settle", "operator publish"]
  }
  const often = () => random.pick([0.05, 0.2, 0.4])
  return {
    ...letters(scenario, random, 4),
    rates: { ...calm, cut: often(), lostAnswer: often(), late: random.pick([0, 0.2]), busy: random.pick([0, 0.2]) },
    focus: random.pick(places[familyOf(scenario)])
  }
}
