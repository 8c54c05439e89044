/**
 * Waits until a test sees something. The error says what did not arrive.
 *
 * Waiting uses Effect's Clock, so the same code waits in virtual time and in real time.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { CheckFailed } from "./Check.ts"

/** The name of the expected thing, for the error. A function is called only when the time is over. */
export type What = string | (() => string)

/** How long to wait, and how often to check. */
export interface Options {
  /** Maximum milliseconds to wait. Default 120,000. */
  readonly within?: number
  /** Milliseconds between two checks; after a long wait, a twentieth of the time waited so far. Default 20. */
  readonly every?: number
}

/**
 * Repeats a check until it returns something, and returns that.
 *
 * Fails with {@link CheckFailed} if the check still returns `undefined` after `within`, and with the error of a check that fails.
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
