/**
 * Measuring again where the control was late. That is no second chance for what is tested: it fails as soon as it does
 * something wrong, and is late as soon as it is late by a control that was not. What failed was the ruler.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { NotMeasurable } from "./Lateness.ts"

/** What came of measuring. */
export interface Measured<A, E> {
  /** How often it was measured. */
  readonly times: number
  /** What the last measurement came to. */
  readonly exit: Exit.Exit<A, E>
  /** Why nothing could be measured, not even the last time; `undefined` where something was. */
  readonly reason: NotMeasurable | undefined
}

export interface Options {
  /** Measurements at most. Default 5. */
  readonly most?: number | undefined
  /** Wraps each measurement but the first, for example to let nothing else be measured again beside it. */
  readonly again?: (<A, E, R>(measurement: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
}

/** Only where nothing else went wrong: a failure beside it is a failure. */
const reasonOf = (exit: Exit.Exit<unknown, unknown>): NotMeasurable | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const [only, ...others] = exit.cause.reasons
  const isOnly = others.length === 0 && only !== undefined && Cause.isFailReason(only)
  return isOnly && only.error instanceof NotMeasurable ? only.error : undefined
}

/**
 * Runs a measurement until it does not fail with {@link NotMeasurable}, or until it has done so as often as allowed.
 * Never fails: how the last measurement ended stands in the answer.
 */
export const run = <A, E, R>(
  measurement: Effect.Effect<A, E, R>,
  { again = (wrapped) => wrapped, most = 5 }: Options = {}
): Effect.Effect<Measured<A, E>, never, R> => {
  const attempt = (times: number): Effect.Effect<Measured<A, E>, never, R> =>
    Effect.flatMap(Effect.exit(times === 1 ? measurement : again(measurement)), (exit) => {
      const reason = reasonOf(exit)
      return reason === undefined || times >= most ? Effect.succeed({ times, exit, reason }) : attempt(times + 1)
    })
  return attempt(1)
}

const isRuler = (reason: Cause.Reason<unknown>): boolean =>
  (Cause.isFailReason(reason) ? reason.error : Cause.isDieReason(reason) && reason.defect) instanceof NotMeasurable

/** What went wrong; where something else stands beside a ruler that failed, that. */
export const errorOf = <E>({ reasons }: Cause.Cause<E>): unknown => {
  const others = reasons.filter((reason) => !isRuler(reason))
  return Cause.squash(Cause.fromReasons(others.length === 0 ? reasons : others))
}

/** What a test runner hands to a test; Vitest's has `task`, whose `meta` stands in its reports. */
export interface TestContext {
  readonly skip: (reason?: string) => unknown
  readonly task?: { readonly meta: object }
}

/** A measurement as the body of a test: it fails with the measurement, and is skipped when that could not be made. */
export const inTest = async (context: TestContext, measurement: Effect.Effect<void, unknown>): Promise<void> =>
  report(context, await Effect.runPromise(run(measurement)))

/** Tells the runner how often was measured; throws what failed, and skips the test when nothing could be measured. */
export const report = (
  { skip, task: { meta } = { meta: {} } }: TestContext,
  { exit, reason, times }: Measured<unknown, unknown>
): void => {
  if (times > 1) Object.assign(meta, { measured: times })
  if (reason !== undefined) {
    Object.assign(meta, { notMeasurable: reason.message })
    skip(`not measurable here: ${reason.message}`)
  } else if (Exit.isFailure(exit)) throw errorOf(exit.cause)
}
