/**
 * Measuring again where the control was late. That is no second chance for what is tested: it fails as soon as it does
 * something wrong, and is late as soon as it is late by a control that was not. What failed was the ruler.
 */
import * as Effect from "effect/Effect"
import { NotMeasurable } from "./Lateness.ts"

/** What came of measuring. */
export interface Measured<A> {
  /** How often it was measured. */
  readonly times: number
  /** `undefined` when it could not be measured: then `reason` says why. */
  readonly value: A | undefined
  readonly reason: NotMeasurable | undefined
}

export interface Options {
  /** Measurements at most. Default 5. */
  readonly most?: number | undefined
  /** Wraps each measurement but the first, for example to let nothing else be measured again beside it. */
  readonly again?: (<A, E, R>(measurement: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>) | undefined
}

/** Runs a measurement until it does not fail with {@link NotMeasurable}, or until it has done so as often as allowed. */
export const run = <A, E, R>(
  measurement: Effect.Effect<A, E, R>,
  { again = (wrapped) => wrapped, most = 5 }: Options = {}
): Effect.Effect<Measured<A>, Exclude<E, NotMeasurable>, R> => {
  const attempt = (times: number): Effect.Effect<Measured<A>, Exclude<E, NotMeasurable>, R> =>
    Effect.matchEffect(times === 1 ? measurement : again(measurement), {
      onSuccess: (value) => Effect.succeed({ times, value, reason: undefined }),
      onFailure: (error) => {
        if (!(error instanceof NotMeasurable)) return Effect.fail(error as Exclude<E, NotMeasurable>)
        return times < most ? attempt(times + 1) : Effect.succeed({ times, value: undefined, reason: error })
      }
    })
  return attempt(1)
}

/** What a test runner hands to a test; Vitest's has `task`, whose `meta` stands in its reports. */
export interface TestContext {
  readonly skip: (reason?: string) => unknown
  readonly task?: { readonly meta: object }
}

/** A measurement as the body of a test: it fails with the measurement, and is skipped when that could not be made. */
export const inTest = async (context: TestContext, measurement: Effect.Effect<void, unknown>): Promise<void> => {
  const { reason, times } = await Effect.runPromise(run(measurement))
  report(context, times, reason?.message)
}

/** Tells the runner how often was measured, and skips the test when that was of no use, for the reason that is given. */
export const report = (context: TestContext, times: number, reason: string | undefined): void => {
  const meta = context.task?.meta ?? {}
  if (times > 1) Object.assign(meta, { measured: times })
  if (reason === undefined) return
  Object.assign(meta, { notMeasurable: reason })
  context.skip(`not measurable here: ${reason}`)
}
