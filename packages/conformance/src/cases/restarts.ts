/** Brokers that restart: what they keep, and what holds if they keep nothing. */
import { BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { ends } from "../internal/calls.ts"
import * as Needs from "../Needs.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("restarts")

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "accepted messages survive a restart of the broker",
    function* (lab) {
      yield* lab.send("a", "b", "c")
      yield* lab.harness.restart!
      yield* lab.start()
      yield* lab.until("all have come", () => new Set(lab.runs.map(({ id }) => id)).size === 3, lab.recovery)
      yield* lab.untilEmpty
    },
    Needs.all(Needs.restart, Needs.has("durableMessages"))
  ),
  test(
    "where messages may be lost in a restart, the consumer still goes on afterwards",
    function* (lab) {
      yield* lab.start()
      yield* lab.harness.restart!
      yield* lab.untilReconnected
      yield* lab.send("after")
      yield* lab.until("it comes", () => lab.runs.some(({ id }) => id === "after"), lab.recovery)
    },
    Needs.all(Needs.restart, Needs.lacks("durableMessages"))
  ),
  test(
    "a publish ends while the broker restarts, and one that fails says that it may be repeated",
    function* (lab) {
      yield* lab.publish("first")
      const { restart: stopAndStart = Effect.void } = lab.harness
      const restart = yield* Effect.forkChild(stopAndStart)
      for (let [count, isOver] = [1, false]; !isOver; count++) {
        isOver = restart.pollUnsafe() !== undefined
        const told = yield* ends(lab, "the publish", Effect.result(lab.publish(`m${count}`)))
        if (Result.isFailure(told)) {
          const { failure } = told
          const isRetryable = failure instanceof BrokerError.BrokerError && failure.isRetryable
          Check.isTrue("it may be asked again", isRetryable, String(failure))
        }
        yield* Effect.sleep(lab.unit)
      }
      yield* Fiber.join(restart)
      const sent = Effect.map(Effect.exit(lab.publish("last")), (exit) => Exit.isSuccess(exit) || undefined)
      yield* Wait.found("a publish that succeeds", sent, { within: lab.recovery, every: lab.unit })
      yield* lab.start()
      yield* lab.until("the last one", () => lab.runs.some(({ id }) => id === "last"), lab.recovery)
    },
    Needs.restart
  ),
  test(
    "a pending delay survives a restart of the broker",
    function* (lab) {
      const sent = lab.now()
      yield* lab.sendDelayed("a", 4 * lab.unit)
      yield* lab.harness.restart!
      yield* lab.start()
      const [run] = yield* lab.untilRuns(1, lab.recovery)
      lab.checkNotEarly("the message", 4 * lab.unit, sent, run!.at)
      Check.equal("attempts", run!.attempts, 1)
    },
    Needs.all(Needs.restart, Needs.has("durableDelays"))
  ),
  test(
    "where a restart may forget delays, no handler runs early all the same",
    function* (lab) {
      const sent = lab.now()
      yield* lab.sendDelayed("a", 4 * lab.unit)
      yield* lab.start()
      yield* lab.harness.restart!
      yield* lab.untilReconnected
      yield* Effect.sleep(6 * lab.unit + lab.slack)
      for (const { at } of lab.runs) lab.checkNotEarly("a run", 4 * lab.unit, sent, at)
    },
    Needs.all(Needs.restart, Needs.lacks("durableDelays"))
  )
]
