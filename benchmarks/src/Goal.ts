/** Goals: what a measurement must show. `goals.ts` has them as data; this file judges a result by one. Pure. */
import type { CaseResult, Quantity } from "./results.ts"
import { valuesOf } from "./results.ts"
import { isDisturbed, ratio, spread, type Spread } from "./statistics.ts"

/** A bound that a value must keep. */
export type Limit = { readonly atMost: number } | { readonly atLeast: number }

export interface Goal {
  /** What is done, for readers. */
  readonly work: string
  readonly suite: string
  readonly case: string
  readonly contender: string
  readonly quantity: Quantity
  /** The contender to compare it with, in the same rounds. Default: none, the value itself is limited. */
  readonly against?: string
  /** A case of the same suite: this ratio is divided by the ratio of the same two there, which removes the cost of the others. */
  readonly basis?: string
  readonly limit: Limit
  /** A value for this entry, of the same quantity, that reaches the goal as well. */
  readonly or?: Limit
}

export interface Verdict {
  readonly goal: Goal
  /** `undefined` if it was not measured, or could not be done. */
  readonly value: Spread | undefined
  readonly isMet: boolean
  /** How far beyond its limit it is: 0.1 for 10 %. 0 if it is met. */
  readonly missedBy: number
  /** The baseline of the case against itself, in the same quantity: it alone shows whether the machine was quiet. */
  readonly control: Spread | undefined
  /** Whether the machine was quiet; else the value proves nothing. */
  readonly counts: boolean
}

const beyond = (limit: Limit, value: number): number =>
  "atMost" in limit ? value / limit.atMost - 1 : limit.atLeast / value - 1

const readingsOf = (result: CaseResult | undefined, name: string | undefined) =>
  result?.lines.find((line) => line.name === name)?.readings ?? []

/** A contender's value over the rounds, or its ratio to another's. */
const measure = (
  result: CaseResult | undefined,
  quantity: Quantity,
  contender: string,
  against: string | undefined
): Spread | undefined => {
  const values = valuesOf(readingsOf(result, contender), quantity)
  if (values.length === 0) return undefined
  if (against === undefined) return spread(values)
  const others = valuesOf(readingsOf(result, against), quantity)
  return others.length === 0 ? undefined : ratio(values, others)
}

const controlOf = (result: CaseResult | undefined, quantity: Quantity): Spread | undefined =>
  result?.again === undefined ? undefined : measure(result, quantity, result.again, result.lines[0]!.name)

const isQuiet = (result: CaseResult | undefined, quantity: Quantity): boolean => {
  const control = controlOf(result, quantity)
  return result !== undefined && (control === undefined || !isDisturbed(control))
}

/** The minimum and the maximum that two ranges allow: the two are of different rounds. */
const divided = (value: Spread | undefined, by: Spread | undefined): Spread | undefined =>
  value && by && { median: value.median / by.median, min: value.min / by.max, max: value.max / by.min }

export const judge = (goal: Goal, results: ReadonlyArray<CaseResult>): Verdict => {
  const { against, contender, limit, or, quantity } = goal
  const find = (name: string) => results.find((each) => each.suite === goal.suite && each.case === name)
  const result = find(goal.case)
  const basis = goal.basis === undefined ? undefined : find(goal.basis)
  const own = measure(result, quantity, contender, against)
  const value = goal.basis === undefined ? own : divided(own, measure(basis, quantity, contender, against))
  const alone = or && measure(result, quantity, contender, undefined)
  const control = controlOf(result, quantity)
  const missedBy = value === undefined ? Number.NaN : beyond(limit, value.median)
  const isMet = missedBy <= 0 || (or !== undefined && alone !== undefined && beyond(or, alone.median) <= 0)
  return {
    goal,
    value,
    isMet,
    missedBy: isMet ? 0 : missedBy,
    control,
    counts: isQuiet(result, quantity) && (goal.basis === undefined || isQuiet(basis, quantity))
  }
}

/** Whether everything that goals judge of a case was measured on a quiet machine. Without goals, its CPU. */
export const isSettled = (result: CaseResult, goals: ReadonlyArray<Goal>): boolean => {
  const judged = goals.filter(
    ({ basis, suite, case: name }) => suite === result.suite && [name, basis].includes(result.case)
  )
  return (judged.length === 0 ? (["cpu"] as const) : judged.map(({ quantity }) => quantity)).every((quantity) =>
    isQuiet(result, quantity)
  )
}
