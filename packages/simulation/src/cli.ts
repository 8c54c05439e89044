/** `npm run simulate`: campaigns of many seeds, and one seed as a table. */
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs"
import * as Campaign from "./Campaign.ts"
import * as Checked from "./Checked.ts"
import { type Arguments, Misuse, read } from "./cli/Arguments.ts"
import * as Report from "./cli/Report.ts"
import * as Generate from "./Generate.ts"
import { kinds, type Scenario } from "./Scenario.ts"
import * as ScenarioFile from "./ScenarioFile.ts"
import * as Shrink from "./Shrink.ts"
import * as Table from "./Table.ts"

const help = `npm run simulate -- [options]

Runs Requeue's core in simulated worlds: brokers, processes, faults and people, each world made from one seed.

  --seeds n       how many seeds (default 20,000)
  --from n        the first seed (default 1)
  --kind k        ${kinds.join(", ")}; repeat it for several (default: all)
  --workers n     threads (default: one for each core)
  --results file  appends each chunk of seeds to the file; chunks that this code has run are not run again
  --report file   writes what was found, as JSON

  --seed n        runs one seed, shrinks it if it breaks a law, and prints what happened
  --scenario file runs the scenario in a JSON file, and prints what happened
  --whole         does not shrink

Exit codes: 0 no law was broken, 1 one was, or a situation was seen too rarely, 2 misused, 3 it failed itself.`

const campaign = async (
  { from, kinds, report: file, results, seeds, workers }: Extract<Arguments, { readonly _tag: "Campaign" }>,
  args: ReadonlyArray<string>
): Promise<number> => {
  // A campaign must not run if its report cannot be written.
  if (file !== undefined) closeSync(openSync(file, "a"))
  const begun = performance.now()
  let told = begun
  const sum = await Campaign.run({
    seeds,
    from,
    kinds,
    ...(workers === undefined ? {} : { workers }),
    ...(results === undefined ? {} : { file: results }),
    onChunk: ({ cpu, failures, seeds: ran }) => {
      if (performance.now() - told < 5000) return
      told = performance.now()
      const rate = Math.round(ran / (cpu / 1000))
      console.error(`${ran} of ${seeds} seeds, ${rate} in a CPU second, ${failures.length} broke a law`)
    }
  })
  if (sum.others > 0) console.error(`${results} has ${sum.others} chunks of other code: they do not count here`)
  const report = Report.make(sum, { args, from, kinds, wall: performance.now() - begun })
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`)
  console.log(Report.print(report))
  return Report.isBad(report) ? 1 : 0
}

const show = async (scenario: Scenario, replay: string, shrinks: boolean): Promise<number> => {
  // As in the threads of a campaign: the metadata of copies has stack traces.
  Error.stackTraceLimit = 0
  let checked = await Checked.run(scenario)
  const { law } = checked
  if (law !== undefined && shrinks) {
    console.error(`${law}: shrinking ...`)
    const small = await Shrink.shrink(scenario, law, Checked.run)
    checked = await Checked.run(small)
    console.error(`${Shrink.size(small)} events are left. The scenario:\n${ScenarioFile.write(small)}\n`)
  }
  console.log(Table.print(checked.history, checked.violations, checked.scenario))
  console.log(`Replay: ${replay}`)
  return law === undefined ? 0 : 1
}

const main = async (args: Array<string>): Promise<number> => {
  const wanted = read(args)
  switch (wanted._tag) {
    case "Help":
      console.log(help)
      return 0
    case "Seed": {
      const { kinds, seed, whole } = wanted
      return show(Generate.scenario(seed, kinds), Report.replayOf(seed, kinds), !whole)
    }
    case "Scenario": {
      const scenario = ScenarioFile.read(readFileSync(wanted.file, "utf8"))
      return show(scenario, `npm run simulate -- --scenario ${wanted.file}`, !wanted.whole)
    }
    case "Campaign":
      return campaign(wanted, args)
  }
}

/** Whether an error is the caller's: an argument, a file, or a scenario whose program cannot start. */
const isMisuse = (error: unknown): error is Error =>
  error instanceof Misuse ||
  // The form of our own errors; no error of the engine has it.
  (error instanceof RangeError && /^[\w.]+: /.test(error.message)) ||
  (error instanceof Error && ("syscall" in error || ("_tag" in error && error._tag === "ConfigurationError")))

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  process.exitCode = isMisuse(error) ? 2 : 3
  console.error(isMisuse(error) ? `${error.message.replaceAll(/\s+/g, " ")} (--help lists the options)` : error)
}
