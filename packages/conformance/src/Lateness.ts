/**
 * How late something was, against its bound and against a control of the same moment.
 *
 * A machine that is slow or busy makes everything late, and a test that knows only a fixed bound cannot tell that from a
 * broker that is late. So a reading has what a {@link Control} saw in the same window. The control may only be late by half
 * of the bound: beyond that it was the ruler that failed, and the reading says nothing. Hence what is later than one and a
 * half times its bound never passes. What came early is early, whatever a control says.
 */
import * as Effect from "effect/Effect"
import { CheckFailed } from "./Check.ts"

/** One thing that came after its time. */
export interface Reading {
  /** What came, for a message. */
  readonly what: string
  /**
   * Milliseconds after it was due, negative before; `Infinity` for what a machine that keeps up would not have let happen
   * at all.
   */
  readonly late: number
  /** Milliseconds by which it may be late where nothing else needs the machine. */
  readonly bound: number
  /** Milliseconds by which the latest control of the same window was late. */
  readonly control: number
}

export type Verdict = "Early" | "Late" | "NotMeasurable" | "OnTime"

/**
 * What a reading says. Pure.
 *
 * ```ts
 * import { Lateness } from "@requeue/conformance"
 *
 * const reading = { what: "a retry", late: 180, bound: 100 }
 * Lateness.judge({ ...reading, control: 3 }) // => "Late"
 * Lateness.judge({ ...reading, late: 140, control: 45 }) // => "OnTime"
 * Lateness.judge({ ...reading, control: 60 }) // => "NotMeasurable"
 * ```
 */
export const judge = ({ bound, control, late }: Reading): Verdict => {
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

/** Nothing can be said of lateness: in the same window the controls themselves were later than what is to be measured. */
export class NotMeasurable extends Error {
  override readonly name = "NotMeasurable"
  readonly readings: ReadonlyArray<Reading>
  constructor(readings: ReadonlyArray<Reading>) {
    super(readings.slice(0, 10).map(show).join("; "))
    this.readings = readings
  }
}

/**
 * Fails with {@link CheckFailed} when a reading was early or late, else with {@link NotMeasurable} when one says nothing.
 *
 * `share` is how much of them, from 0 to below 1, may be late or say nothing: 0.01 holds 99 of 100 to their bounds.
 * Default 0.
 */
export const check = (
  readings: ReadonlyArray<Reading>,
  share = 0
): Effect.Effect<void, CheckFailed | NotMeasurable> => {
  const those = (verdict: Verdict) => readings.filter((reading) => judge(reading) === verdict)
  const failed = (wrong: ReadonlyArray<Reading>) =>
    Effect.fail(new CheckFailed(`${wrong.length} of ${readings.length}: ${wrong.slice(0, 10).map(show).join("; ")}`))
  const [early, late, unclear] = [those("Early"), those("Late"), those("NotMeasurable")]
  if (!(share >= 0 && share < 1)) throw new RangeError(`Lateness.check: share must be from 0 to below 1, got ${share}`)
  // What 100 times 0.29 is short of 29 does not count.
  const most = Math.floor(share * readings.length + 1e-9)
  if (early.length > 0) return failed(early)
  if (late.length > most) return failed(late)
  return late.length + unclear.length > most ? Effect.fail(new NotMeasurable(unclear)) : Effect.void
}
