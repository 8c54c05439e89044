/** A consumer that an operator pauses and resumes. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept, checkOnce } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("pause and resume")

const succeeded = (lab: Lab) => lab.eventsOf("Succeeded").map(({ id }) => id)

/** Starts a consumer that has two messages, holds one of them in its handler until the gate opens, and pauses the consumer. */
const paused = (lab: Lab) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a", "b")
    const consumer = yield* lab.start({}, () => (lab.runs.length === 1 ? Deferred.await(gate) : undefined))
    yield* lab.untilRuns(1)
    yield* lab.until("both are delivered", () => lab.entriesOf("Delivered").length >= 2)
    consumer.pause()
    return { consumer, finish: Deferred.succeed(gate, undefined) }
  })

export const cases: ReadonlyArray<Case.Case> = [
  test("a paused consumer takes nothing and starts nothing, and lets handlers end that run", function* (lab) {
    const begun = lab.now()
    const { consumer, finish } = yield* paused(lab)
    Check.equal("credit", lab.entriesOf("Credit").at(-1)!.limit, 0)
    yield* lab.send("c", "d")
    yield* finish
    yield* lab.untilEvents("Succeeded", 1)
    yield* lab.quiet(2 * lab.unit)
    Check.equal("runs", lab.runs.length, 1)
    Check.equal("acked", succeeded(lab), [lab.runs[0]!.id])
    const { backoff, buffered, inProgress, state } = consumer.health()
    Check.equal("state", state, "paused")
    Check.equal("because", backoff[0], { because: "operator", state: "paused", level: 0, until: undefined })
    if (checkKept(lab, "waiting and in progress", [buffered, inProgress], [1, 0], begun))
      yield* lab.untilPending({ ready: 2, inFlight: 1 })
  }),
  test("a paused consumer that is resumed goes on with what it has, and then with the rest", function* (lab) {
    const begun = lab.now()
    const { consumer, finish } = yield* paused(lab)
    yield* lab.send("c", "d")
    yield* finish
    yield* lab.untilEvents("Succeeded", 1)
    consumer.resume()
    Check.equal("state", consumer.health().state, "running")
    yield* lab.untilEvents("Succeeded", 4)
    Check.equal("runs", lab.runs.map(({ attempts, id }) => `${id} ${attempts}`).toSorted(), [
      "a 1",
      "b 1",
      "c 1",
      "d 1"
    ])
    checkOnce(lab, begun)
    yield* lab.untilEmpty
  }),
  test(
    "a paused consumer keeps the leases of waiting messages",
    function* (lab) {
      const { duration } = lab.capabilities.lease!
      const { consumer, finish } = yield* paused(lab)
      const begun = lab.now()
      yield* finish
      yield* Effect.sleep(2.5 * duration)
      consumer.resume()
      yield* lab.untilEvents("Succeeded", 2)
      yield* lab.quiet()
      checkKept(lab, "deliveries", lab.entriesOf("Delivered").length, 2, begun)
      Check.equal("runs", lab.runs.length, 2)
      yield* lab.untilEmpty
    },
    Needs.lease
  ),
  test("a consumer that is paused before a drain returns waiting messages, and ends", function* (lab) {
    const { consumer, finish } = yield* paused(lab)
    yield* finish
    yield* lab.untilEvents("Succeeded", 1)
    const { complete } = yield* consumer.drain(lab.recovery)
    Check.equal("complete", complete, true)
    Check.equal("runs", lab.runs.length, 1)
    yield* lab.untilPending({ ready: 1, inFlight: 0 })
  })
]
