/** Runs a scenario and checks its history. */
import type { Violation } from "./check/Checker.ts"
import * as Checker from "./check/Checker.ts"
import type { History } from "./History.ts"
import type { Scenario } from "./Scenario.ts"
import * as Simulation from "./Simulation.ts"

/** A run, and the laws that it breaks. */
export interface Checked {
  readonly scenario: Scenario
  readonly history: History
  readonly violations: ReadonlyArray<Violation>
  /** The first law that it breaks. */
  readonly law: string | undefined
}

/** Runs a scenario, and checks its history. */
export const run = async (scenario: Scenario): Promise<Checked> => {
  const history = await Simulation.run(scenario)
  const violations = Checker.check(scenario, history)
  return { scenario, history, violations, law: violations[0]?.law }
}
