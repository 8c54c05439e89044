/** Runs handlers on the test clock. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { HandlerTimeout } from "../../src/policy/Failure.ts"
import type { Context } from "../../src/message/Handler.ts"
import * as AsyncContext from "../../src/runtime/AsyncContext.ts"
import * as Deadlines from "../../src/runtime/Deadlines.ts"
import { type Outcome, runner } from "../../src/consume/internal/runHandler.ts"
import * as Timers from "../../src/runtime/Timers.ts"

/** Runs one handler; `outcomes` collects every call of `done`. */
export const start = Effect.fnUntraced(function* (
  handler: (context: Context) => unknown,
  timeout = Number.POSITIVE_INFINITY
) {
  const timers = yield* Timers.make
  const fork = Effect.runForkWith(yield* Effect.context())
  const outcomes: Array<Outcome> = []
  const within = AsyncContext.capture()
  const dependencies = { fork, within, deadlines: Deadlines.make(timers, timeout) }
  const start = runner(dependencies, (_, context) => handler(context), true)
  const run = start({ toMessage: () => {}, toBatch: () => {} }, (_, outcome) => outcomes.push(outcome))
  return { run, outcomes }
})

/** Lets promises settle. */
export const settled = Effect.promise(async () => {
  for (let i = 0; i < 5; i++) await Promise.resolve()
})

export const Succeeded = { _tag: "Succeeded" }
export const Interrupted = { _tag: "Interrupted" }
export const Failed = (error: unknown) => ({ _tag: "Failed", error })
export const boom = new Error("boom")

export const isTimeout = (outcomes: ReadonlyArray<Outcome>, timeout: number) => {
  assert.lengthOf(outcomes, 1)
  const [outcome] = outcomes
  assert.isTrue(
    outcome?._tag === "Failed" && outcome.error instanceof HandlerTimeout && outcome.error.timeout === timeout
  )
}
