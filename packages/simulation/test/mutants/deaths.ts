/** Deaths of mutants: the first seed in which a mutant breaks a law that the sources as they are keep in that seed. */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import * as Generate from "../../src/Generate.ts"
import * as Checked from "../../src/Checked.ts"
import type { Kind } from "../../src/Scenario.ts"
import type { Mutant } from "./Mutant.ts"

/** What the process of a mutant says: that a seed begins, or that it breaks a law. */
export interface Line {
  readonly seed: number
  readonly law?: string
  readonly what?: string
}

/** The end of a mutant. */
export interface Death {
  readonly name: string
  readonly seed: number
  readonly kind: Kind
  /** The law that it broke; `uncaught exception`, `endless` or `process died` where it came to no end. */
  readonly law: string
}

/** The seeds to try, and the kinds of brokers that they choose from. */
export interface Seeds {
  readonly from: number
  readonly count: number
  readonly kinds: ReadonlyArray<Kind>
}

/** All kinds of brokers. */
export const kinds: ReadonlyArray<Kind> = ["push", "lease", "lossy"]

/** Milliseconds without a new seed after which a process hangs. */
const patience = 240_000

/** Whether the sources as they are keep all laws in a seed. */
export const isClean = async (seed: number, kinds: ReadonlyArray<Kind>): Promise<boolean> =>
  (await Checked.run(Generate.scenario(seed, kinds))).violations.length === 0

/** Calls back with each line of a mutant's process, until it ends or is told that this was enough. */
const run = (
  { file, from, to }: Mutant,
  seeds: Seeds,
  onLine: (line: Line) => Promise<boolean>
): Promise<{ readonly code: number | null; readonly last: number; readonly told: string }> =>
  new Promise((resolve, reject) => {
    const local = (name: string): string => new URL(name, import.meta.url).pathname
    const child = spawn(
      process.execPath,
      [
        "--conditions=@requeue/source",
        `--import=${local("mutate.mjs")}`,
        local("seeds.ts"),
        `${seeds.from}`,
        `${seeds.count}`,
        seeds.kinds.join(",")
      ],
      { env: { ...process.env, NODE_OPTIONS: "", REQUEUE_MUTANT: JSON.stringify({ file, from, to }) } }
    )
    let last = seeds.from
    let told = ""
    let work = Promise.resolve(false)
    const hang = (): NodeJS.Timeout => setTimeout(() => child.kill("SIGKILL"), patience)
    let timer = hang()
    createInterface({ input: child.stdout }).on("line", (text) => {
      const line: Line = JSON.parse(text)
      last = line.seed
      clearTimeout(timer)
      timer = hang()
      work = work.then(async (isEnough) => {
        if (isEnough || !(await onLine(line))) return isEnough
        child.kill("SIGKILL")
        return true
      })
    })
    child.stderr.on("data", (text) => (told = `${told}${String(text)}`.slice(-2000)))
    child.on("error", reject)
    child.on("close", (code) => {
      clearTimeout(timer)
      work.then(() => resolve({ code, last, told }), reject)
    })
  })

/** The death of a mutant among these seeds; `undefined` when it survives them. */
export const find = async (mutant: Mutant, seeds: Seeds): Promise<Death | undefined> => {
  const { kinds } = seeds
  const end = seeds.from + seeds.count
  const deathAt = async (seed: number, law: string): Promise<Death | undefined> =>
    (await isClean(seed, kinds))
      ? { name: mutant.name, seed, kind: Generate.scenario(seed, kinds).kind, law }
      : undefined
  for (let from = seeds.from; from < end; ) {
    let death: Death | undefined
    const { code, last, told } = await run(mutant, { from, count: end - from, kinds }, async ({ law, seed }) => {
      if (law !== undefined) death ??= await deathAt(seed, law)
      return death !== undefined
    })
    if (told.includes("text of the mutant")) throw new Error(`${mutant.name}: ${told}`)
    if (code !== 0) death ??= await deathAt(last, "process died")
    if (death !== undefined || code === 0) return death
    from = last + 1
  }
  return undefined
}

/** Calls the function with each of the values, two at a time. */
export const inPairs = async <A>(values: ReadonlyArray<A>, act: (value: A) => Promise<void>): Promise<void> => {
  const left = [...values]
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await act(next)
  }
  await Promise.all([work(), work()])
}
