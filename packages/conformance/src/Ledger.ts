/** The ledger of a suite has the outcome of every case. No case is left out silently. */

/** The outcome of one case. */
export type Outcome =
  | { readonly _tag: "Passed" }
  | { readonly _tag: "Failed"; readonly error: unknown }
  /** The broker or the harness lacks what the case needs. */
  | { readonly _tag: "NotApplicable"; readonly missing: string }
  /** The machine was too late at each measurement for a verdict about the broker. */
  | { readonly _tag: "NotMeasurable"; readonly reason: string }

/** The line of one case in the ledger. */
export interface Line {
  readonly group: string
  readonly name: string
  readonly outcome: Outcome
  /** How often the case was measured: more than once if the machine was late. */
  readonly measured: number
}

/** The outcomes of a suite's cases. */
export interface Ledger {
  /** The adapter's name. */
  readonly name: string
  readonly lines: ReadonlyArray<Line>
  /** The number of cases of the suite, including those that did not run. */
  readonly cases: number
}

/** The numbers of cases, by outcome. */
export interface Totals {
  readonly passed: number
  readonly failed: number
  readonly notApplicable: number
  readonly notMeasurable: number
  /** Cases that were measured more than once. */
  readonly measuredAgain: number
  /** Cases that the test runner left out, for example because it ran a single one. */
  readonly notRun: number
}

/** Counts the cases of a ledger by outcome. */
export const totals = ({ cases, lines }: Ledger): Totals => {
  const count = (tag: Outcome["_tag"]) => lines.filter(({ outcome }) => outcome._tag === tag).length
  return {
    passed: count("Passed"),
    failed: count("Failed"),
    notApplicable: count("NotApplicable"),
    notMeasurable: count("NotMeasurable"),
    measuredAgain: lines.filter(({ measured }) => measured > 1).length,
    notRun: cases - lines.length
  }
}

/** Cases that did not run because the harness lacks an ability. */
export interface Untested {
  /** The missing ability, by its name in the harness. */
  readonly ability: string
  /** The names of the cases that did not run, which say what remains untested. */
  readonly cases: ReadonlyArray<string>
}

const ofHarness = "harness."

/**
 * Returns what a suite could not test because its harness lacks an ability. An adapter that breaks these guarantees still
 * passes.
 */
export const untested = ({ lines }: Ledger): ReadonlyArray<Untested> => {
  const byAbility = new Map<string, Array<string>>()
  for (const { name, outcome } of lines) {
    if (outcome._tag !== "NotApplicable" || !outcome.missing.startsWith(ofHarness)) continue
    const [ability = ""] = outcome.missing.slice(ofHarness.length).split("(")
    byAbility.set(ability, [...(byAbility.get(ability) ?? []), name])
  }
  return [...byAbility].map(([ability, cases]) => ({ ability, cases }))
}

const mark = { Passed: "pass", Failed: "FAIL", NotApplicable: "n/a ", NotMeasurable: "????" } as const

const firstLine = (error: unknown): string => String(error instanceof Error ? error.message : error).split("\n")[0]!

const about = (outcome: Outcome): ReadonlyArray<string> => {
  switch (outcome._tag) {
    case "Passed":
      return []
    case "Failed":
      return [firstLine(outcome.error)]
    case "NotApplicable":
      return [`missing: ${outcome.missing}`]
    case "NotMeasurable":
      return [`not measurable here: ${outcome.reason}`]
  }
}

const detail = ({ measured, outcome }: Line): string => {
  const parts = [...(measured > 1 ? [`measured ${measured} times`] : []), ...about(outcome)]
  return parts.length === 0 ? "" : ` (${parts.join("; ")})`
}

/**
 * Formats a ledger as text: a line for each case, by group, then the guarantees that the suite could not test, and the
 * totals.
 */
export const render = (ledger: Ledger): string => {
  const { failed, measuredAgain, notApplicable, notMeasurable, notRun, passed } = totals(ledger)
  const groups = [...new Set(ledger.lines.map(({ group }) => group))]
  return [
    `conformance of ${ledger.name}`,
    ...groups.flatMap((group) => [
      `  ${group}`,
      ...ledger.lines
        .filter((line) => line.group === group)
        .map((line) => `    ${mark[line.outcome._tag]}  ${line.name}${detail(line)}`)
    ]),
    ...untested(ledger).flatMap(({ ability, cases }) => [
      `not tested, because the harness has no ${ability}:`,
      ...cases.map((name) => `  ${name}`)
    ]),
    `${ledger.cases} cases: ${passed} passed, ${failed} failed, ${notApplicable} not applicable, ` +
      `${notMeasurable} not measurable here (${measuredAgain} measured again)` +
      (notRun === 0 ? "" : `, ${notRun} not run`)
  ].join("\n")
}
