/**
 * Measuring again where a control was late. That is no second chance for what is tested: it fails at the first measurement
 * in which it does something wrong, or is late while its control is not. Only measurements that say nothing are repeated.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { NotMeasurable } from "./Lateness.ts"

/** The end of the last measurement. */
export interface Measured<A, E> {
  /** How often it was measured. */
  readonly times: number
  /** How the last measurement ended. */
  readonly exit: Exit.Exit<A, E>
  /** Why the last measurement, too, says nothing; `undefined` where it says something. */
  readonly reason: NotMeasurable | undefined
}

/** How often, and how, something is measured again. */
export interface Options {
  /** The largest number of measurements. Default 5. */
  readonly most?: number | undefined
  /** Wraps each measurement but the first, for example so that only one runs at a time. Default: wraps nothing. */
  readonly again?: (<A, E, R>(measurement: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
}

/** Answers why a measurement says nothing, unless something else failed as well: then it failed. */
const reasonOf = (exit: Exit.Exit<unknown, unknown>): NotMeasurable | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const [only, ...others] = exit.cause.reasons
  const isOnly = others.length === 0 && only !== undefined && Cause.isFailReason(only)
  return isOnly && only.error instanceof NotMeasurable ? only.error : undefined
}

/**
 * Repeats a measurement as long as it fails with {@link NotMeasurable}, but only as often as the options allow. Never fails:
 * the answer says how the last measurement ended.
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

const isNotMeasurable = (reason: Cause.Reason<unknown>): boolean =>
  (Cause.isFailReason(reason) ? reason.error : Cause.isDieReason(reason) && reason.defect) instanceof NotMeasurable

/** Answers the error of a failed measurement. {@link NotMeasurable} is the last choice: any other error goes before. */
export const errorOf = <E>({ reasons }: Cause.Cause<E>): unknown => {
  const others = reasons.filter((reason) => !isNotMeasurable(reason))
  return Cause.squash(Cause.fromReasons(others.length === 0 ? reasons : others))
}

/** The argument that a test runner gives to a test. Vitest's has a `task`, whose `meta` stands in its reports. */
export interface TestContext {
  readonly skip: (reason?: string) => unknown
  readonly task?: { readonly meta: object }
}

/** Runs a measurement as the body of a test, and reports it as {@link report} does. */
export const inTest = async (context: TestContext, measurement: Effect.Effect<void, unknown>): Promise<void> =>
  report(context, await Effect.runPromise(run(measurement)))

/** Skips a test that the machine was too late for, so that reports count it among those. */
export const skip = ({ skip, task: { meta } = { meta: {} } }: TestContext, reason: string): void => {
  Object.assign(meta, { notMeasurable: reason })
  skip(`not measurable here: ${reason}`)
}

/**
 * Reports to a test runner how often something was measured. Throws the error of a measurement that failed; skips the test
 * where the last measurement says nothing.
 */
export const report = (context: TestContext, { exit, reason, times }: Measured<unknown, unknown>): void => {
  if (times > 1) Object.assign(context.task?.meta ?? {}, { measured: times })
  if (reason !== undefined) skip(context, reason.message)
  else if (Exit.isFailure(exit)) throw errorOf(exit.cause)
}
