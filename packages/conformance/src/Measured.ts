/**
 * Repeats measurements in which a control was late. The subject of a test gets no second chance. It fails at the first
 * measurement in which it does something wrong, or is late although its control is not. Only inconclusive measurements are
 * repeated.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { NotMeasurable } from "./Lateness.ts"

/** The result of repeated measurements. */
export interface Measured<A, E> {
  /** How often it was measured. */
  readonly times: number
  /** How the last measurement ended. */
  readonly exit: Exit.Exit<A, E>
  /** Why the last measurement is inconclusive; `undefined` if it is conclusive. */
  readonly reason: NotMeasurable | undefined
}

/** How often, and how, a measurement is repeated. */
export interface Options {
  /** The largest number of measurements. Default 5. */
  readonly most?: number | undefined
  /** Wraps each measurement but the first, for example to run only one at a time. Default: wraps nothing. */
  readonly again?: (<A, E, R>(measurement: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
}

/**
 * Returns why a measurement is inconclusive. Returns `undefined` if something else failed as well, because then the
 * measurement has failed.
 */
const reasonOf = (exit: Exit.Exit<unknown, unknown>): NotMeasurable | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  const [only, ...others] = exit.cause.reasons
  const isOnly = others.length === 0 && only !== undefined && Cause.isFailReason(only)
  return isOnly && only.error instanceof NotMeasurable ? only.error : undefined
}

/**
 * Repeats a measurement while it fails with {@link NotMeasurable}, up to the maximum of the options. Never fails: it returns how
 * the last measurement ended.
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

/** Returns the error of a failed measurement. Any other error takes precedence over {@link NotMeasurable}. */
export const errorOf = <E>({ reasons }: Cause.Cause<E>): unknown => {
  const others = reasons.filter((reason) => !isNotMeasurable(reason))
  return Cause.squash(Cause.fromReasons(others.length === 0 ? reasons : others))
}

/** The argument that a test runner gives to a test. Vitest's has a `task`, whose `meta` appears in its reports. */
export interface TestContext {
  readonly skip: (reason?: string) => unknown
  readonly task?: { readonly meta: object }
}

/** Runs a measurement as the body of a test, and reports it as {@link report} does. */
export const inTest = async (context: TestContext, measurement: Effect.Effect<void, unknown>): Promise<void> =>
  report(context, await Effect.runPromise(run(measurement)))

/** Skips a test that the machine was too late for, and reports count it as such. */
export const skip = ({ skip, task: { meta } = { meta: {} } }: TestContext, reason: string): void => {
  Object.assign(meta, { notMeasurable: reason })
  skip(`not measurable here: ${reason}`)
}

/**
 * Reports to a test runner how often something was measured. Throws the error of a measurement that failed; skips the test if the
 * last measurement is inconclusive.
 */
export const report = (context: TestContext, { exit, reason, times }: Measured<unknown, unknown>): void => {
  if (times > 1) Object.assign(context.task?.meta ?? {}, { measured: times })
  if (reason !== undefined) skip(context, reason.message)
  else if (Exit.isFailure(exit)) throw errorOf(exit.cause)
}
