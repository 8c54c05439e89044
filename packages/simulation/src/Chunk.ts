/** A chunk of a campaign: some seeds, one after the other, and their findings. */
import * as Coverage from "./Coverage.ts"
import * as Generate from "./Generate.ts"
import * as Checked from "./Checked.ts"
import type { Kind } from "./Scenario.ts"

/** The seeds of a chunk. */
export interface Task {
  readonly from: number
  readonly count: number
  readonly kinds: ReadonlyArray<Kind>
}

/** A seed that breaks a law. */
export interface Failure {
  readonly seed: number
  readonly kind: Kind
  readonly law: string
  readonly what: string
}

/** The findings of a chunk. */
export interface Result extends Task {
  /** Seeds of each kind of broker. */
  readonly seeds: Readonly<Record<string, number>>
  /** Facts in all histories. */
  readonly facts: number
  /** Milliseconds of CPU. */
  readonly cpu: number
  /** In how many histories each situation was seen. */
  readonly seen: Coverage.Counts
  readonly failures: ReadonlyArray<Failure>
}

const cpu = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1000
}

/** Runs a chunk. */
export const run = async (task: Task): Promise<Result> => {
  const before = cpu()
  const seeds: Record<string, number> = {}
  const seen: Coverage.Counts = {}
  const failures: Array<Failure> = []
  let facts = 0
  for (let seed = task.from; seed < task.from + task.count; seed++) {
    const { history, scenario, violations } = await Checked.run(Generate.scenario(seed, task.kinds))
    const { kind } = scenario
    seeds[kind] = (seeds[kind] ?? 0) + 1
    facts += history.length
    Coverage.count(seen, history)
    const [first] = violations
    if (first !== undefined) failures.push({ seed, kind, law: first.law, what: first.what })
  }
  return { ...task, seeds, facts, cpu: cpu() - before, seen, failures }
}
