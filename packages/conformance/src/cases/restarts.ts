/** Brokers that restart: what they keep, and what holds where they keep nothing. */
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import * as Needs from "../Needs.ts"

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
    "a pending delay survives a restart of the broker",
    function* (lab) {
      const sent = lab.now()
      yield* lab.sendDelayed("a", 4 * lab.unit)
      yield* lab.harness.restart!
      yield* lab.start()
      const [run] = yield* lab.untilRuns(1, lab.recovery)
      Check.isTrue("not early", run!.at - sent >= 4 * lab.unit, run!.at - sent)
      Check.equal("attempts", run!.attempts, 1)
    },
    Needs.all(Needs.restart, Needs.has("durableDelays"))
  ),
  test(
    "where a restart may forget delays, no handler runs early all the same",
    function* (lab) {
      const due = lab.now() + 4 * lab.unit
      yield* lab.sendDelayed("a", 4 * lab.unit)
      yield* lab.start()
      yield* lab.harness.restart!
      yield* lab.untilReconnected
      yield* Effect.sleep(6 * lab.unit + lab.slack)
      Check.isTrue(
        "not early",
        lab.runs.every(({ at }) => at >= due),
        lab.runs
      )
    },
    Needs.all(Needs.restart, Needs.lacks("durableDelays"))
  )
]
