/**
 * Decides how late something was, compared to its bound and to a control of the same moment.
 *
 * A slow or busy machine makes everything late, and a test with a fixed bound cannot distinguish that from a late broker.
 * So each reading includes how late a {@link Control} was in the same window. A control may be late by half of the bound at
 * most: beyond that, nothing can be measured. So a reading that is later than one and a half times its bound never passes.
 * An early reading is early, whatever the control shows.
 */
import * as Effect from "effect/Effect"
import { CheckFailed } from "./Check.ts"

/** The measured lateness of one thing, with its bound and its control. */
export interface Reading {
  /** The name of the thing, for error messages. */
  readonly what: string
  /**
   * How many milliseconds after its due time it arrived; negative if it was early. `Infinity` stands for a thing that
   * cannot happen while the machine keeps up.
   */
  readonly late: number
  /** Milliseconds by which the thing may be late on a quiet machine. */
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

/** The error of inconclusive readings: the controls in their windows were too late to measure by. */
export class NotMeasurable extends Error {
  override readonly name = "NotMeasurable"
  readonly readings: ReadonlyArray<Reading>
  constructor(readings: ReadonlyArray<Reading>) {
    super(readings.slice(0, 10).map(show).join("; "))
    this.readings = readings
  }
}

/**
 * Fails with {@link CheckFailed} if a reading is early or late. Otherwise it fails with {@link NotMeasurable} if a reading
 * is inconclusive.
 *
 * `share` is the part of the readings that may be late or inconclusive, from 0 to below 1. With 0.01, 99 of 100 readings
 * must keep their bounds. Default 0. Throws a RangeError for any other share.
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
