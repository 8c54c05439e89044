/** Calls of the broker that a harness makes fail below the adapter. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Check from "../Check.ts"
import type { Loss } from "../Harness.ts"
import type { Lab } from "../Lab.ts"

/** How a call fails, in the words of case names. */
export const words: Readonly<Record<Loss, string>> = {
  refused: "that the broker refuses",
  lostRequest: "that never reaches the broker",
  lostAnswer: "that the broker never answers"
}

/** Milliseconds within which a failure is over: a message may have to wait for the end of its lease. */
export const within = (lab: Lab): number => lab.recovery + 2 * (lab.capabilities.lease?.duration ?? 0)

/** Waits for a call that must end. */
export const ends = <A, E, R>(
  lab: Lab,
  what: string,
  call: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Check.CheckFailed, R> =>
  Effect.timeoutOrElse(call, {
    duration: Duration.millis(within(lab)),
    orElse: () => Effect.fail(new Check.CheckFailed(`${what}: no end within ${within(lab)} ms`))
  })
