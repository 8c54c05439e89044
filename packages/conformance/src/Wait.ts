/**
 * Waiting for what a test can see: it ends when that is there, or fails with a sentence that says what was not.
 *
 * Time is that of Effect's Clock, so the same waiting works in virtual time and in real time.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { CheckFailed } from "./Check.ts"

/** How a failure names what was waited for; a function is asked when it is too late. */
export type What = string | (() => string)

/** Both in milliseconds. */
export interface Patience {
  /** How long to wait. Default 60,000. */
  readonly within?: number
  /** From one look to the next, at first; then a twentieth of what was waited. Default 20. */
  readonly every?: number
}

/**
 * Looks until there is something, and answers it.
 *
 * Fails with {@link CheckFailed} when there is still `undefined` after `within`, and with what a look fails with.
 *
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
  { every = 20, within = 60_000 }: Patience = {}
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
 * Waits until a condition holds. What it throws, or rejects with, is a defect.
 *
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
