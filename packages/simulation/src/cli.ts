/** `npm run simulate`: campaigns of many seeds, and one seed as a table that a person can read. */
import { readFileSync, writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import * as Campaign from "./Campaign.ts"
import * as Coverage from "./Coverage.ts"
import * as Generate from "./Generate.ts"
import * as Checked from "./Checked.ts"
import type { Kind, Scenario } from "./Scenario.ts"
import * as Shrink from "./Shrink.ts"
import * as Table from "./Table.ts"

const kinds: ReadonlyArray<Kind> = ["push", "lease", "lossy"]

const help = `npm run simulate -- [options]

Runs Requeue's core in simulated worlds: brokers, processes, faults and people, each world made from one seed.

  --seeds n       how many seeds (default 20,000)
  --from n        the first seed (default 1)
  --kind k        ${kinds.join(", ")}; repeat it for several (default: all)
  --workers n     threads (default: one for each core)
  --results file  appends each chunk of seeds to the file; chunks that are there are not run again
  --report file   writes what was found, as JSON

  --seed n        runs one seed, shrinks it if it breaks a law, and prints what happened
  --scenario file runs the scenario in a JSON file, and prints what happened
  --whole         does not shrink

Exit codes: 0 no law was broken, 1 one was, or a situation was never seen, 2 misused.`

class Misuse extends Error {}

const options = {
  seeds: { type: "string", default: "20000" },
  from: { type: "string", default: "1" },
  kind: { type: "string", multiple: true },
  workers: { type: "string" },
  results: { type: "string" },
  report: { type: "string" },
  seed: { type: "string" },
  scenario: { type: "string" },
  whole: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false }
} as const

const whole = (name: string, text: string, least: number): number => {
  const value = Number(text.replaceAll(/[,_]/g, ""))
  if (Number.isSafeInteger(value) && value >= least) return value
  throw new Misuse(`--${name} must be a whole number >= ${least}, got ${text}`)
}

const kindsOf = (named: ReadonlyArray<string> | undefined): ReadonlyArray<Kind> =>
  (named ?? kinds).map((name) => {
    const found = kinds.find((kind) => kind === name)
    if (found === undefined) throw new Misuse(`--kind must be one of ${kinds.join(", ")}, got ${name}`)
    return found
  })

/** The least part of all seeds in which every situation must be seen; fewer seeds than these prove nothing. */
const leastSeen = 0.01
const seedsForCoverage = 10_000

const percent = (part: number): string => `${(part * 100).toFixed(2)} %`

const campaign = async (values: ReturnType<typeof parse>): Promise<number> => {
  const seeds = whole("seeds", values.seeds, 1)
  const wanted = kindsOf(values.kind)
  const begun = performance.now()
  let told = begun
  const sum = await Campaign.run({
    seeds,
    from: whole("from", values.from, 0),
    kinds: wanted,
    ...(values.workers === undefined ? {} : { workers: whole("workers", values.workers, 1) }),
    ...(values.results === undefined ? {} : { file: values.results }),
    onChunk: ({ cpu, failures, seeds: ran }) => {
      if (performance.now() - told < 5000) return
      told = performance.now()
      const rate = Math.round(ran / (cpu / 1000))
      console.error(`${ran} of ${seeds} seeds, ${rate} in a CPU second, ${failures.length} broke a law`)
    }
  })
  const least = wanted.length === kinds.length && seeds >= seedsForCoverage ? leastSeen : 0
  const missing = least === 0 ? [] : Coverage.missing(sum.seen, sum.seeds, least)
  const report = {
    seeds: sum.seeds,
    perKind: sum.perKind,
    facts: sum.facts,
    seconds: Math.round((performance.now() - begun) / 1000),
    seedsPerCpuSecond: Math.round(sum.seeds / (sum.cpu / 1000)),
    failures: sum.failures,
    seen: Object.fromEntries(Object.entries(sum.seen).map(([name, count]) => [name, percent(count / sum.seeds)]))
  }
  if (values.report !== undefined) writeFileSync(values.report, `${JSON.stringify(report, undefined, 2)}\n`)
  for (const { kind, law, seed, what } of sum.failures.slice(0, 20))
    console.log(`seed ${seed} (${kind}): ${law}: ${what}`)
  for (const [name, part] of missing) console.log(`seen too rarely, in ${percent(part)} of the seeds: ${name}`)
  console.log(
    `${sum.seeds} seeds, ${report.seconds} s, ${report.seedsPerCpuSecond} in a CPU second: ${sum.failures.length} broke a law`
  )
  return sum.failures.length > 0 || missing.length > 0 ? 1 : 0
}

const show = async (scenario: Scenario, replay: string, shrinks: boolean): Promise<number> => {
  let checked = await Checked.run(scenario)
  const { law } = checked
  if (law !== undefined && shrinks) {
    console.error(`${law}: shrinking ...`)
    const small = await Shrink.shrink(scenario, law, Checked.run)
    checked = await Checked.run(small)
    console.error(`${Shrink.size(small)} events are left. The scenario:\n${JSON.stringify(small)}\n`)
  }
  console.log(Table.print(checked.history, checked.violations, checked.scenario))
  console.log(`Replay: ${replay}`)
  return law === undefined ? 0 : 1
}

const parse = (args: Array<string>) => {
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    throw new Misuse(error instanceof Error ? error.message : String(error))
  }
}

const main = async (args: Array<string>): Promise<number> => {
  const values = parse(args)
  if (values.help) {
    console.log(help)
    return 0
  }
  if (values.seed !== undefined) {
    const seed = whole("seed", values.seed, 0)
    const named = values.kind?.map((kind) => ` --kind ${kind}`).join("") ?? ""
    return show(
      Generate.scenario(seed, kindsOf(values.kind)),
      `npm run simulate -- --seed ${seed}${named}`,
      !values.whole
    )
  }
  if (values.scenario !== undefined) {
    const scenario: Scenario = JSON.parse(readFileSync(values.scenario, "utf8"))
    return show(scenario, `npm run simulate -- --scenario ${values.scenario}`, !values.whole)
  }
  return campaign(values)
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof Misuse)) throw error
  console.error(`${error.message}\n\n${help}`)
  process.exitCode = 2
}
