/** Settlements that the broker refuses for its own reasons, and what must continue meanwhile. */
import { Backoff, ConsumerBackoff, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { broken, fails, type Fault } from "../internal/faults.ts"
import type { Lab } from "../Lab.ts"
import * as Workload from "../Workload.ts"

const test = Case.inGroup("a broker in trouble")

/** Milliseconds of the first pause after a settlement that the broker refused. */
const firstPause = 2000

const ours = broken("Throttled")

/** Checks that a settlement is requested again after a pause in which nothing begins, and that no handler runs twice. */
const asksAgain = (lab: Lab, fault: Fault) =>
  Effect.gen(function* () {
    fails(lab, "Ack", fault)
    yield* lab.send("a", "b", "c", "d")
    yield* lab.start({}, () => Effect.sleep(firstPause / 4))
    yield* lab.untilEvents("Succeeded", 4)
    const asked = lab.entriesOf("Settling").filter(({ delivery }) => delivery.metadata.id === lab.runs[0]!.id)
    const tags = asked.map(({ settlement }) => settlement._tag)
    Check.equal("asked first", tags.slice(0, 2), ["Ack", "Ack"])
    lab.checkTimely("asked", tags, ["Ack", "Ack"], asked[0]!.at)
    lab.checkDelay("the second time", firstPause, asked[0]!.at, asked[1]!.at)
    // The second run begins before the first ack is answered. The repeated request may arrive a little after the pause.
    const later = lab.runs.slice(2).map(({ at }) => at - asked[0]!.at - firstPause)
    Check.isTrue(
      "nothing begins in the pause",
      later.every((after) => after >= 0),
      later
    )
    const credit = lab.entriesOf("Credit").findLast(({ at }) => at < asked[0]!.at + firstPause)
    Check.equal("credit in the pause", credit?.limit, 0)
    Check.equal("runs", lab.runs.map(({ id }) => id).toSorted(), ["a", "b", "c", "d"])
    const told = lab.eventsOf("BackoffEntered").map(({ because }) => because)
    Check.equal("reported first", told[0], "broker")
    lab.checkTimely("reported", told, ["broker"], asked[0]!.at)
    yield* lab.untilEmpty
  })

export const cases: ReadonlyArray<Case.Case> = [
  test("an ack of which nothing happened is asked again without a second run, and nothing begins before", (lab) =>
    asksAgain(lab, ours)),
  test("an ack with an unknown outcome is requested again without a second run, and nothing begins before", (lab) =>
    asksAgain(lab, broken("Timeout"))),
  test("settlements are probed by one of them, which waits for no handler that is slow", function* (lab) {
    const gate = yield* Deferred.make<void>()
    const fast = Workload.ids(40)
    fails(lab, "Ack", ours)
    yield* lab.send("slow", ...fast)
    yield* lab.start({ concurrency: 10 }, ({ id }) => (id === "slow" ? Deferred.await(gate) : undefined))
    yield* lab.untilEvents("Succeeded", fast.length)
    Check.isTrue(
      "the slow one still runs",
      lab.eventsOf("Succeeded").every(({ id }) => id !== "slow")
    )
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", fast.length + 1)
    Check.equal("runs", lab.runs.length, fast.length + 1)
    yield* lab.untilEmpty
  }),
  test("the probe of a consumer backoff comes at its time, even while slow handlers run", function* (lab) {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a", "b", "c", "d", "e")
    const pause = 2 * lab.unit
    yield* lab.start(
      {
        concurrency: 2,
        prefetch: 0,
        retry: RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.constant(50 * lab.unit) }),
        consumerBackoff: ConsumerBackoff.nsq({ multiplier: lab.unit })
      },
      () => [Deferred.await(gate), Effect.fail(new Error("down"))][lab.runs.length - 1]
    )
    yield* lab.untilRuns(3)
    // From the run that failed: the credit may be withdrawn later.
    lab.checkDelay("the probe", pause, lab.runs[1]!.at, lab.runs[2]!.at)
    yield* lab.untilEvents("Succeeded", 3)
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 4)
  })
]
