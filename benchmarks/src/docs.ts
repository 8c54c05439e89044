/** The parts of the pages that are made from results: tables between markers, and the table of goals. Pure. */
import * as Goal from "./Goal.ts"
import * as Goals from "./goals.ts"
import { type Column, columns, digits, ratioOf } from "./report.ts"
import type { CaseResult, Line, Quantity, Result } from "./results.ts"
import { inOneTable } from "./suites/index.ts"

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

const table = (heads: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [row(heads), row(heads.map(() => "---")), ...rows.map(row)].join("\n")

/** Columns, the names of the lines first, each with its cell for a line. */
const tableOf = (lines: ReadonlyArray<Line>, all: ReadonlyArray<Column>): string => {
  const shown = all.filter(([title, cell]) => title === "" || lines.some((line) => cell(line, lines[0]!) !== ""))
  return table(
    shown.map(([title]) => title),
    lines.map((line) => shown.map(([, cell]) => cell(line, lines[0]!)))
  )
}

/** The findings of the workloads, as a separate table. */
const figuresOf = (lines: ReadonlyArray<Line>): ReadonlyArray<string> => {
  const figures = [...new Set(lines.flatMap((line) => Object.keys(line.figures)))]
  const cellOf =
    (figure: string): Column[1] =>
    ({ figures: found }) =>
      found[figure] === undefined ? "" : digits(found[figure])
  const all = [columns[0]!, ...figures.map((figure): Column => [figure, cellOf(figure)])]
  return figures.length === 0 ? [] : [tableOf(lines, all)]
}

export const plotOf = ({ case: name, suite }: CaseResult): string => `${`${suite} ${name}`.replaceAll(/\W+/g, "-")}.svg`

const caseOf = (result: CaseResult, index: number): string => {
  const { messages } = result
  return [
    `${result.case} (${messages.toLocaleString("en")} each, ${result.lines[0]!.readings.length} rounds):`,
    tableOf(result.lines, columns),
    ...figuresOf(result.lines),
    ...result.failed.map(({ error, name }) => `${name} could not: ${error}`),
    ...(result.isDisturbed
      ? [`**Does not count:** the control, the baseline against itself, gave ${ratioOf(result.control)}.`]
      : []),
    // The others appear only in pictures: too many for a page.
    ...(index === 0 ? [`![${result.case}](charts/${plotOf(result)})`] : [])
  ].join("\n\n")
}

const short: ReadonlyArray<Column> = columns.filter(([title]) =>
  ["CPU/message", "x baseline (min to max)", "messages/s", "broker CPU", "resident"].includes(title)
)

/** All cases in one table; the baseline of each is its first line. */
const together = (cases: ReadonlyArray<CaseResult>): ReadonlyArray<string> => [
  table(
    ["", "", ...short.map(([title]) => title)],
    cases.flatMap(({ case: name, lines }) =>
      lines.map((line, n) => [n === 0 ? name : "", line.name, ...short.map(([, cell]) => cell(line, lines[0]!))])
    )
  ),
  ...cases
    .filter(({ isDisturbed }) => isDisturbed)
    .map(({ case: name, control }) => `**${name} does not count:** the control gave ${ratioOf(control)}.`),
  ...cases.flatMap(({ case: name, failed }) => failed.map((each) => `${name}: ${each.name} could not: ${each.error}`))
]

/** The tables of a suite. */
const suiteOf = ({ at, cases, command, environment }: Result): string => {
  const { node, system: _, ...rest } = environment
  const facts = Object.entries({ node, ...rest }).map(([name, value]) => `${name} ${value}`)
  return [
    `\`${command}\`, ${at.slice(0, 16).replace("T", " ")} UTC; ${facts.join(", ")}.`,
    ...(inOneTable(cases[0]!.suite) ? together(cases) : cases.map(caseOf))
  ].join("\n\n")
}

const names: Readonly<Record<Extract<Quantity, string>, string>> = {
  cpu: "client CPU",
  rate: "messages/s",
  brokerCpu: "broker CPU",
  resident: "peak of resident memory",
  heap: "heap peak"
}

const limitOf = (limit: Goal.Limit): string =>
  "atMost" in limit ? `<= ${limit.atMost.toLocaleString("en")}` : `>= ${limit.atLeast.toLocaleString("en")}`

const outcomeOf = ({ counts, isMet, missedBy, value }: Goal.Verdict): string => {
  if (value === undefined) return "not measured"
  const outcome = isMet ? "met" : `**missed by ${Math.round(missedBy * 100)} %**`
  return counts ? outcome : `does not count (${outcome.replaceAll("*", "")})`
}

const rangeOf = (value: { readonly median: number; readonly min: number; readonly max: number } | undefined): string =>
  value === undefined ? "" : `${digits(value.median)} (${digits(value.min)} to ${digits(value.max)})`

const goalRows = (cases: ReadonlyArray<CaseResult>): ReadonlyArray<ReadonlyArray<string>> =>
  Goals.all
    .map((goal) => Goal.judge(goal, cases))
    .map((verdict) => {
      const { against, basis, contender, limit, or, quantity, work } = verdict.goal
      const what = typeof quantity === "string" ? names[quantity] : quantity.figure
      const compared = against === undefined ? "" : ` x ${against}${basis === undefined ? "" : `, x ${basis}`}`
      return [
        work,
        contender,
        `${what} ${limitOf(limit)}${compared}${or === undefined ? "" : `, or ${limitOf(or)}`}`,
        rangeOf(verdict.value),
        outcomeOf(verdict),
        rangeOf(verdict.control)
      ]
    })

/** The goals of what was measured, as lines for readers. */
export const goalText = (cases: ReadonlyArray<CaseResult>): string =>
  goalRows(cases)
    .filter(([, , , measured]) => measured !== "")
    .map(([work, contender, goal, measured, outcome, control]) =>
      [
        `${work}, ${contender}: ${goal}`,
        `  ${measured}: ${outcome!.replaceAll("*", "")}; control ${control || "none"}`
      ].join("\n")
    )
    .join("\n")

const goalHeads = ["work", "goal", "measured", "outcome"] as const

/** Without the control, which the tables of the case have. Most contenders are `requeue`. */
const shortRow = ([work, contender, ...cells]: ReadonlyArray<string>): ReadonlyArray<string> => [
  contender === "requeue" ? work! : `${work} (${contender})`,
  ...cells.slice(0, -1)
]

/** Rewrites what is between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`; all else stays. */
export const render = (page: string, results: ReadonlyArray<Result>): string => {
  const cases = results.flatMap((result) => result.cases)
  const suites = new Map(results.map((result) => [result.cases[0]?.suite, suiteOf(result)]))
  const goals = table(goalHeads, goalRows(cases).map(shortRow))
  return page.replaceAll(
    /(<!-- bench:([\w-]+) -->)[^]*?(<!-- \/bench:\2 -->)/g,
    (before: string, open: string, name: string, close: string) => {
      const text = name === "goals" ? goals : suites.get(name)
      return text === undefined ? before : `${open}\n\n${text}\n\n${close}`
    }
  )
}
