/** `npm run bench`. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import * as Arguments from "./arguments.ts"
import * as Environment from "./environment.ts"
import * as Interleave from "./interleave.ts"
import * as Pinning from "./pinning.ts"
import * as Plot from "./plot.ts"
import * as Report from "./report.ts"
import * as Results from "./results.ts"
import * as Venues from "./venues.ts"

const say = (line: string): void => console.error(line)

const write = (file: string, text: string): void => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  say(`wrote ${file}`)
}

const run = async ({ json, plots, quick, rounds, suites }: Arguments.Arguments): Promise<number> => {
  const pinning = Pinning.detect()
  const size = (messages: number): number => (quick ? Math.ceil(messages / 10) : messages)
  const cases: Array<Results.CaseResult> = []
  let environment = Environment.describe(pinning)
  console.log(Report.environmentText({ environment }))
  {
    await using venues = Venues.make(pinning, say)
    for (const suite of suites) {
      const venue = await venues.of(suite)
      environment = { ...environment, ...venue?.facts }
      for (const one of suite.cases(size)) {
        const measured = await Interleave.run(one, {
          venue,
          pinning,
          rounds: rounds ?? (quick ? 2 : suite.rounds),
          say
        })
        const result = Results.of(suite, one, measured)
        cases.push(result)
        console.log(`\n${Report.caseText(result)}`)
      }
    }
  }
  const command = `npm run bench -- ${process.argv.slice(2).join(" ")}`.trim()
  const result: Results.Result = { command, at: new Date().toISOString(), environment, cases }
  if (json !== undefined) write(json, `${JSON.stringify(result, undefined, 2)}\n`)
  for (const each of plots === undefined ? [] : cases) {
    write(join(plots!, `${`${each.suite} ${each.case}`.replaceAll(/\W+/g, "-")}.svg`), Plot.cpu(each))
  }
  return cases.some(({ beyond }) => beyond.length > 0) ? 1 : 0
}

const asked = Arguments.parse(process.argv.slice(2), (file) => resolve(process.env["INIT_CWD"] ?? ".", file))
if ("help" in asked) console.log(asked.help)
else if ("misuse" in asked) {
  console.error(asked.misuse)
  process.exitCode = 2
} else process.exitCode = await run(asked)
