/** `npm run bench`. */
import { resolve } from "node:path"
import * as Arguments from "./arguments.ts"
import * as Docs from "./docs.ts"
import * as Environment from "./environment.ts"
import * as Goal from "./Goal.ts"
import * as Goals from "./goals.ts"
import * as Interleave from "./interleave.ts"
import * as Kept from "./kept.ts"
import * as Pinning from "./pinning.ts"
import * as Progress from "./progress.ts"
import * as Report from "./report.ts"
import * as Results from "./results.ts"
import * as Venues from "./venues.ts"

const say = (line: string): void => console.error(line)

/** The maximum factor for the rounds of a case while its control is off. */
const patience = 3

const run = async (asked: Arguments.Arguments): Promise<number> => {
  const { docs, json, only, plots, quick, suites } = asked
  const pinning = Pinning.detect()
  const size = (messages: number): number => (quick ? Math.ceil(messages / 10) : messages)
  const plan = suites.map((suite) => {
    const rounds = asked.rounds ?? (quick ? 2 : suite.rounds)
    const most = asked.rounds === undefined && !quick ? patience * rounds : rounds
    return { suite, cases: suite.cases(size).filter(({ name }) => name.includes(only)), rounds, most }
  })
  const progress = Progress.make(plan, say)
  const command = `npm run bench -- ${process.argv.slice(2).join(" ")}`.trim()
  const environment = Environment.describe(pinning)
  const results: Array<Results.Result> = []
  console.log(Report.environmentText({ environment }))
  {
    await using venues = Venues.make(pinning, say)
    for (const { cases, most, rounds, suite } of plan.filter((each) => each.cases.length > 0)) {
      const venue = await venues.of(suite)
      const done: Array<Results.CaseResult> = []
      for (const one of cases) {
        const isSettled = (measured: ReadonlyArray<Interleave.Measured>): boolean =>
          Goal.isSettled(Results.of(suite, one, measured), Goals.all)
        const effort = { rounds, most, isSettled }
        const measured = await Interleave.run(one, { ...effort, venue, pinning, say, onRound: progress.next })
        progress.settled()
        done.push(Results.of(suite, one, measured))
        console.log(`\n${Report.caseText(done.at(-1)!)}`)
      }
      const facts = { ...environment, ...venue?.facts }
      results.push({ command, at: new Date().toISOString(), environment: facts, cases: done })
      // At once: a later step may fail.
      if (docs) {
        Kept.keep(results.at(-1)!, say)
        Kept.render(say)
      }
    }
  }
  const all: Results.Result = {
    command,
    at: new Date().toISOString(),
    environment: Object.assign({}, ...results.map((result) => result.environment)),
    cases: results.flatMap(({ cases }) => cases)
  }
  console.log(`\n${Docs.goalText(all.cases)}`)
  if (json !== undefined) Kept.write(json, Kept.json(all), say)
  if (plots !== undefined) Kept.draw(all, plots, say)
  return all.cases.some(({ beyond }) => beyond.length > 0) ? 1 : 0
}

const asked = Arguments.parse(process.argv.slice(2), (file) => resolve(process.env["INIT_CWD"] ?? ".", file))
if ("help" in asked) console.log(asked.help)
else if ("misuse" in asked) {
  console.error(asked.misuse)
  process.exitCode = 2
} else if (asked.render) Kept.render(say)
else process.exitCode = await run(asked)
