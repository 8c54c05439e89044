/**
 * Waiting until a test sees something. It fails with a sentence that says what did not come.
 *
 * Time is that of Effect's Clock, so the same waiting works in virtual time and in real time.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { CheckFailed } from "./Check.ts"

/** The name of what is waited for, for the error. A function is called only when the time is over. */
export type What = string | (() => string)

/** How long to wait, and how often to look. */
export interface Options {
  /** Milliseconds to wait at most. Default 120,000. */
  readonly within?: number
  /** Milliseconds from one look to the next; a twentieth of the time waited, once that is more. Default 20. */
  readonly every?: number
}

/**
 * Looks again and again until a look answers something, and answers that.
 *
 * Fails with {@link CheckFailed} when looks still answer `undefined` after `within`, and with the error of a look that fails.
 *
 * @example
 * ```ts
 * import { Wait } from "@requeue/conformance"
 * import * as Effect from "effect/Effect"
 *
 * const letters = ["m1"]
 * const first = Wait.found("a dead letter", Effect.sync(() => letters.at(0)), { within: 1000 })
 * await Effect.runPromise(first) // => "m1"
 * ```
 */
export const found = <A, E, R>(
  what: What,
  look: Effect.Effect<A | undefined, E, R>,
  { every = 20, within = 120_000 }: Options = {}
): Effect.Effect<A, E | CheckFailed, R> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const begun = clock.currentTimeMillisUnsafe()
    while (true) {
      const seen = yield* look
      if (seen !== undefined) return seen
      const waited = clock.currentTimeMillisUnsafe() - begun
      if (waited >= within) {
        const name = typeof what === "string" ? what : what()
        return yield* Effect.fail(new CheckFailed(`${name}: not within ${within} ms`))
      }
      yield* Effect.sleep(Math.max(every, Math.ceil(waited / 20)))
    }
  })

/**
 * Waits until a condition holds, for `within` milliseconds at most; default 120,000. An error that the condition throws, or
 * rejects with, is a defect.
 *
 * @example
 * ```ts
 * import { Wait } from "@requeue/conformance"
 * import * as Effect from "effect/Effect"
 *
 * const runs = ["m1", "m2"]
 * await Effect.runPromise(Wait.until("two runs", () => runs.length === 2, 1000))
 * ```
 */
export const until = (
  what: What,
  condition: () => boolean | Promise<boolean>,
  within?: number
): Effect.Effect<void, CheckFailed> =>
  Effect.asVoid(
    found(
      what,
      Effect.promise(async () => ((await condition()) ? true : undefined)),
      within === undefined ? {} : { within }
    )
  )
