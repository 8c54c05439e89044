/** Regressions: a defect that was found once, and the smallest scenario known in which it breaks a law. */
import { execFile } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { promisify } from "node:util"
import type { Scenario } from "../../src/Scenario.ts"
import type { Mutant } from "../mutants/Mutant.ts"

/** One defect, as a mutant puts it back. */
export interface Regression {
  /** The name of the mutant. */
  readonly mutant: string
  /** The law that the mutant breaks. */
  readonly law: string
  /** The events that the scenario is made of. */
  readonly events: number
  readonly scenario: Scenario
}

const folder = new URL("kept/", import.meta.url)

/** The file of a mutant's regression. */
export const fileOf = (mutant: string): string =>
  new URL(`${mutant.replaceAll(/[^a-zA-Z]+/g, "-").toLowerCase()}.json`, folder).pathname

/** All that are kept. */
export const all = (): ReadonlyArray<Regression> =>
  readdirSync(folder).map((name): Regression => JSON.parse(readFileSync(new URL(name, folder), "utf8")))

const local = (name: string): string => new URL(name, import.meta.url).pathname

/** Runs a script of this folder in a process whose sources have the mutants, and answers what it prints. */
export const within = async (
  mutants: ReadonlyArray<Mutant>,
  script: string,
  args: ReadonlyArray<string>
): Promise<string> => {
  const loader = `--import=${local("../mutants/mutate.mjs")}`
  const env = {
    ...process.env,
    NODE_OPTIONS: "",
    NODE_DISABLE_COMPILE_CACHE: "1",
    REQUEUE_MUTANTS: JSON.stringify(mutants)
  }
  const all = ["--conditions=@requeue/source", loader, local(script), ...args]
  return (await promisify(execFile)(process.execPath, all, { env })).stdout
}
