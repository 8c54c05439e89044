/** Deaths of mutants: the first seed in which a mutant breaks a law that the sources as they are keep in that seed. */
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import * as Generate from "../../src/Generate.ts"
import * as Checked from "../../src/Checked.ts"
import type { Kind } from "../../src/Scenario.ts"
import type { Mutant } from "./Mutant.ts"

/** A mutant, and the seeds that it runs. */
export interface Job extends Pick<Mutant, "file" | "from" | "to"> {
  readonly first: number
  readonly count: number
  readonly kinds: ReadonlyArray<Kind>
}

/** What the process of mutants says: that a seed of a job begins, or that it breaks a law. */
export interface Line {
  /** The index of the job. */
  readonly mutant: number
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

/** Milliseconds without a new seed after which a process hangs. */
const patience = 240_000

/** Whether the sources as they are keep all laws in a seed. */
export const isClean = async (seed: number, kinds: ReadonlyArray<Kind>): Promise<boolean> =>
  (await Checked.run(Generate.scenario(seed, kinds))).violations.length === 0

const jobOf = ({ file, from, to }: Mutant, { count, from: first, kinds }: Seeds): Job => ({
  file,
  from,
  to,
  first,
  count,
  kinds
})

/** Calls back with each line of a process that runs jobs, until it ends or is told that this was enough. */
const run = (
  jobs: ReadonlyArray<Job>,
  onLine: (line: Line) => Promise<boolean>
): Promise<{ readonly code: number | null; readonly last: Line; readonly told: string }> =>
  new Promise((resolve, reject) => {
    const local = (name: string): string => new URL(name, import.meta.url).pathname
    const child = spawn(
      process.execPath,
      ["--conditions=@requeue/source", `--import=${local("mutate.mjs")}`, local("seeds.ts")],
      // Thousands of copies, each of which runs once, are not worth a file each.
      {
        env: {
          ...process.env,
          NODE_OPTIONS: "",
          NODE_DISABLE_COMPILE_CACHE: "1",
          REQUEUE_MUTANTS: JSON.stringify(jobs)
        }
      }
    )
    let last: Line = { mutant: 0, seed: jobs[0]!.first }
    let told = ""
    let work = Promise.resolve(false)
    const hang = (): NodeJS.Timeout => setTimeout(() => child.kill("SIGKILL"), patience)
    let timer = hang()
    createInterface({ input: child.stdout }).on("line", (text) => {
      const line: Line = JSON.parse(text)
      last = line
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
    const job = jobOf(mutant, { from, count: end - from, kinds })
    const { code, last, told } = await run([job], async ({ law, seed }) => {
      if (law !== undefined) death ??= await deathAt(seed, law)
      return death !== undefined
    })
    if (told.includes("text of the mutant")) throw new Error(`${mutant.name}: ${told}`)
    if (code !== 0) death ??= await deathAt(last.seed, "process died")
    if (death !== undefined || code === 0) return death
    from = last.seed + 1
  }
  return undefined
}

/**
 * What each mutant breaks in one seed, in as few processes as possible: a process runs the mutants one after the other, and
 * the next one goes on behind a mutant by which it died. Whether the sources as they are keep the law there is not asked.
 */
export const atSeeds = async (
  mutants: ReadonlyArray<{ readonly mutant: Mutant } & Pick<Death, "seed" | "kind">>
): Promise<ReadonlyArray<Death | undefined>> => {
  const laws: Array<string | undefined> = mutants.map(() => undefined)
  for (let begin = 0; begin < mutants.length; ) {
    const jobs = mutants
      .slice(begin)
      .map(({ kind, mutant, seed }) => jobOf(mutant, { from: seed, count: 1, kinds: [kind] }))
    const { code, last, told } = await run(jobs, async ({ law, mutant }) => {
      laws[begin + mutant] ??= law
      return false
    })
    const at = begin + last.mutant
    if (told.includes("text of the mutant")) throw new Error(`${mutants[at + 1]?.mutant.name}: ${told}`)
    if (code !== 0) laws[at] ??= "process died"
    begin = code === 0 ? mutants.length : at + 1
  }
  return mutants.map(({ kind, mutant: { name }, seed }, index) => {
    const law = laws[index]
    return law === undefined ? undefined : { name, seed, kind, law }
  })
}

/** Calls the function with each of the values, two at a time. */
export const inPairs = async <A>(values: ReadonlyArray<A>, act: (value: A) => Promise<void>): Promise<void> => {
  const left = [...values]
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await act(next)
  }
  await Promise.all([work(), work()])
}
