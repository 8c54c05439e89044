/**
 * How late something was, compared to its bound and to a control of the same moment.
 *
 * A slow or busy machine makes everything late, and a test with a fixed bound cannot distinguish that from a late broker. So each
 * reading includes how late a {@link Control} was in the same window. A control may be late by half of the bound at most: beyond
 * that, nothing can be measured. So a reading that is later than one and a half times its bound never passes. An early reading is
 * early, whatever the control shows.
 */
import * as Effect from "effect/Effect"
import { CheckFailed } from "./Check.ts"

/** One thing that arrived after its time. */
export interface Reading {
  /** Its name, for error messages. */
  readonly what: string
  /**
   * Milliseconds after it was due, negative if it was early; `Infinity` for what cannot happen at all while the machine keeps up.
   */
  readonly late: number
  /** Milliseconds by which it may be late on a quiet machine. */
  readonly bound: number
  /** Milliseconds by which the latest control of the same window was late. */
  readonly control: number
}

/** The verdict on one reading. */
export type Verdict = "Early" | "Late" | "NotMeasurable" | "OnTime"

/**
 * Decides whether something was on time. Pure.
 *
 * @example
 * ```ts
 * import { Lateness } from "@requeue/conformance"
 *
 * const reading = { what: "a retry", late: 180, bound: 100 }
 * Lateness.verdictOf({ ...reading, control: 3 }) // => "Late"
 * Lateness.verdictOf({ ...reading, late: 140, control: 45 }) // => "OnTime"
 * Lateness.verdictOf({ ...reading, control: 60 }) // => "NotMeasurable"
 * ```
 */
export const verdictOf = ({ bound, control, late }: Reading): Verdict => {
  if (late < 0) return "Early"
  if (late <= bound) return "OnTime"
  if (control > bound / 2) return "NotMeasurable"
  return late <= bound + control ? "OnTime" : "Late"
}

const millis = (amount: number): string => `${Math.round(amount)} ms`

const show = ({ bound, control, late, what }: Reading): string => {
  if (late < 0) return `${what}: ${millis(-late)} early`
  const how = late === Number.POSITIVE_INFINITY ? "" : `: ${millis(late)} late`
  return `${what}${how}; ${millis(bound)} are allowed, and a control of the same moment was ${millis(control)} late`
}

/** The error of inconclusive readings: in their windows the controls themselves were too late to measure by. */
export class NotMeasurable extends Error {
  override readonly name = "NotMeasurable"
  readonly readings: ReadonlyArray<Reading>
  constructor(readings: ReadonlyArray<Reading>) {
    super(readings.slice(0, 10).map(show).join("; "))
    this.readings = readings
  }
}

/**
 * Fails with {@link CheckFailed} if a reading is early or late, else with {@link NotMeasurable} if one is inconclusive.
 *
 * `share` is the part of the readings, from 0 to below 1, that may be late or inconclusive: with 0.01, 99 of 100 must keep their
 * bounds. Default 0. Throws a RangeError for any other share.
 */
export const check = (
  readings: ReadonlyArray<Reading>,
  share = 0
): Effect.Effect<void, CheckFailed | NotMeasurable> => {
  const those = (verdict: Verdict) => readings.filter((reading) => verdictOf(reading) === verdict)
  const failed = (wrong: ReadonlyArray<Reading>) =>
    Effect.fail(new CheckFailed(`${wrong.length} of ${readings.length}: ${wrong.slice(0, 10).map(show).join("; ")}`))
  const [early, late, unclear] = [those("Early"), those("Late"), those("NotMeasurable")]
  if (!(share >= 0 && share < 1)) throw new RangeError(`Lateness.check: share must be from 0 to below 1, got ${share}`)
  // 0.29 * 100 is a little less than 29.
  const most = Math.floor(share * readings.length + 1e-9)
  if (early.length > 0) return failed(early)
  if (late.length > most) return failed(late)
  return late.length + unclear.length > most ? Effect.fail(new NotMeasurable(unclear)) : Effect.void
}
