/**
 * Simulated outages must not block the process. They have a limited number of events, run in steps with pauses, and few run at the
 * same time.
 */
import type { ConsumerOptions } from "@requeue/core/port"
import { Outage, OutageReport } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { Refusal } from "../refusal.ts"

/** The limits of a simulation. */
export const most = { messages: 50_000, events: 200_000, rounds: 20, running: 2, waiting: 6 }

/** A report, or why there is none. */
export type Result = OutageReport.OutageReport | Outage.Refusal

/** Simulates outages. */
export type Simulate = (options: ConsumerOptions.Options, question: Outage.Question) => Effect.Effect<Result, Refusal>

/** Runs one outage in steps, with pauses for other work. */
const stepped = (scenario: Outage.Scenario, events: number): Effect.Effect<Outage.Outcome> =>
  Effect.gen(function* () {
    const steps = Outage.steps(scenario, events)
    for (;;) {
      const step = steps.next()
      if (step.done === true) return step.value
      yield* Effect.yieldNow
    }
  })

/** Runs 1 to 20 outages, as the number of events allows. */
const rounds = (scenario: Outage.Scenario): Effect.Effect<ReadonlyArray<Outage.Outcome>> =>
  Effect.gen(function* () {
    const outcomes: Array<Outage.Outcome> = []
    let left = most.events
    while (outcomes.length < most.rounds) {
      const outcome = yield* stepped({ ...scenario, seed: scenario.seed + outcomes.length }, left)
      left -= outcome.events
      // A round that ends early, because earlier rounds used the events, is left out.
      if (outcome.isCut && outcomes.length > 0) break
      outcomes.push(outcome)
      if (left <= 0) break
    }
    return outcomes
  })

const busy = new Refusal({ status: 503, detail: "other outages are being simulated", remedy: "Try again in a moment" })

/** Makes a simulator. */
export const make = (): Simulate => {
  const places = Semaphore.makeUnsafe(most.running)
  let asked = 0
  return (options, question) =>
    Effect.suspend((): Effect.Effect<Result, Refusal> => {
      const scenario = Outage.scenario(options, question, most.messages)
      if ("field" in scenario) return Effect.succeed(scenario)
      if (asked >= most.running + most.waiting) return Effect.fail(busy)
      asked++
      return Effect.ensuring(
        places.withPermits(1)(Effect.map(rounds(scenario), (outcomes) => OutageReport.make(scenario, outcomes))),
        Effect.sync(() => void asked--)
      )
    })
}
