/** Messages that the broker does not release: it refuses their settlements again and again, for these messages alone. */
import { BatchPolicy, type Delivery, RetryPolicy } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { broken, type Fault, fails, gone, refused } from "../internal/faults.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Workload from "../Workload.ts"

const test = Case.inGroup("refused settlements")

const fail = () => Effect.fail(new Error("no"))

const good = Workload.ids(20)

/** Refuses every settlement of one message, except its return to the queue. */
const refuseAll = (lab: Lab, id: string): void => {
  lab.faults.settle = ({ delivery, settlement }) =>
    delivery.metadata.id === id && settlement._tag !== "Release" ? refused : undefined
}

const runsOf = (lab: Lab, id: string): number => lab.runs.filter((run) => run.id === id).length

const ended = (lab: Lab, tag: "Succeeded" | "DeadLettered") => lab.eventsOf(tag).map(({ id }) => id)

/** Checks that a refused message stays in quarantine while this many are handled, and ends as soon as it may. */
const quarantines = (lab: Lab, retry: RetryPolicy.RetryPolicy, concurrency: number) =>
  Effect.gen(function* () {
    refuseAll(lab, "poison")
    yield* lab.send("poison", ...good)
    const consumer = yield* lab.start({ retry, concurrency }, (message) =>
      message.id === "poison" ? fail() : undefined
    )
    yield* lab.untilEvents("Succeeded", good.length)
    yield* lab.untilEvents("Quarantined", 1)
    yield* lab.quiet(2 * lab.unit)
    Check.equal(
      "told",
      lab.eventsOf("Quarantined").map(({ id }) => id),
      ["poison"]
    )
    Check.equal("in health", [consumer.health().quarantined, consumer.health().state], [1, "running"])
    lab.checkTimely("pauses", lab.eventsOf("BackoffEntered").length, 0, lab.runs[0]!.at)
    Check.equal("runs of the poison", runsOf(lab, "poison"), 1)
    lab.faults.settle = undefined
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("the dead letter", letter!.metadata.id, "poison")
    yield* lab.untilEvents("DeadLettered", 1)
    Check.equal("runs of the poison in the end", runsOf(lab, "poison"), retry.maxAttempts)
    Check.equal("in quarantine in the end", consumer.health().quarantined, 0)
    Check.equal("handled", ended(lab, "Succeeded").toSorted(), good.toSorted())
    yield* lab.untilEmpty
  })

/** A dead letter without its truncated parts. */
const lacks = (step: Metadata.Truncation, { metadata: { deadLetter, history } }: Delivery.Delivery): boolean => {
  if (history.length > 0) return false
  if (step === "all") return deadLetter === undefined
  const error = step === "history" ? "TypeError: no" : step === "error-text" ? "TypeError: " : ": "
  return `${deadLetter?.error.name}: ${deadLetter?.error.message}` === error
}

/** Lets dead letters pass only when this much is truncated. */
const cuts = Metadata.truncations.map((step, index) =>
  test(`a dead letter that is accepted only without ${step} records that, and keeps its body and headers`, function* (lab) {
    lab.faults.settle = ({ settlement }) => {
      const isSmaller =
        "cut" in settlement && settlement.cut !== undefined && Metadata.truncations.indexOf(settlement.cut) >= index
      return settlement._tag === "DeadLetter" && !isSmaller ? refused : undefined
    }
    const body = { n: 1, text: "é" }
    yield* (yield* lab.producer()).send(body, { id: "a", headers: { "x-tenant": "ü" } })
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1 }) }, () => Effect.fail(new TypeError("no")))
    const [letter] = yield* lab.untilDeadLetters(1)
    yield* lab.untilEvents("DeadLettered", 1)
    Check.equal("the truncation", letter!.metadata.truncation, step)
    Check.isTrue("what it lacks", lacks(step, letter!), letter!.metadata)
    Check.equal("id", letter!.metadata.id, "a")
    Check.sameBytes("body", letter!.body, new TextEncoder().encode(JSON.stringify(body)))
    Check.equal("headers", letter!.headers, { "content-type": "application/json", "x-tenant": "ü" })
    lab.checkTimely("reported as failed", lab.eventsOf("SettleFailed").length, 1, lab.runs[0]!.at)
    Check.equal("reported as kept", lab.eventsOf("Quarantined").length, 0)
    yield* lab.untilEmpty
  })
)

/** Checks that a message whose handler ran for the last time is not run again when its delivery is lost in quarantine. */
const losesKept = (lab: Lab, lose: Effect.Effect<void, unknown>) =>
  Effect.gen(function* () {
    fails(lab, "DeadLetter", refused, Number.POSITIVE_INFINITY)
    yield* lab.send("a", "b")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, fail)
    yield* lab.untilEvents("Quarantined", 2)
    yield* lose
    yield* lab.until("the redeliveries", () => lab.entriesOf("Delivered").length >= 4, lab.recovery)
    yield* lab.quiet(2 * lab.unit)
    const begun = lab.now()
    lab.faults.settle = undefined
    const letters = yield* lab.untilDeadLetters(2)
    yield* lab.untilEvents("DeadLettered", 2)
    Check.equal("runs", lab.runs.map(({ attempts, id }) => `${id} ${attempts}`).toSorted(), ["a 1", "b 1"])
    const found = letters.map(({ metadata: { deadLetter, id } }) => `${id} ${deadLetter?.reason}`).toSorted()
    const wanted = ["a retries-exhausted", "b retries-exhausted"]
    Check.equal("dead letters", new Set(found), new Set(wanted))
    checkKept(lab, "each once", found, wanted, begun)
    yield* lab.untilEmpty
  })

/** Makes extensions fail until every message has been redelivered. */
const unextended = (lab: Lab, fault: Fault) =>
  Effect.sync(() => {
    lab.faults.extend = () => (lab.entriesOf("Delivered").length < 4 ? fault : undefined)
  })

export const cases: ReadonlyArray<Case.Case> = [
  test("a message whose retry and dead letter are refused holds up no other, and no handler runs for it", (lab) =>
    quarantines(lab, RetryPolicy.make({ maxAttempts: 2 }), 1)),
  test("a message whose dead letter is refused is reported once, counted, and ends when the broker accepts it", (lab) =>
    quarantines(lab, RetryPolicy.make({ maxRetries: 0 }), 5)),
  ...cuts,
  test("a letter that no smaller copy would let through is not made smaller", function* (lab) {
    fails(lab, "DeadLetter", { ...broken("Unroutable"), smaller: false }, 1)
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, fail)
    yield* lab.untilEvents("Quarantined", 1)
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("cut", letter!.metadata.truncation, undefined)
    Check.equal("error", letter!.metadata.deadLetter?.error.message, "no")
    yield* lab.untilEmpty
  }),
  test("a delayed retry whose copy is refused comes after its delay all the same, as the next attempt", function* (lab) {
    lab.faults.settle = ({ settlement }) => (settlement._tag === "Retry" && settlement.delay > 0 ? refused : undefined)
    const delay = 4 * lab.unit
    yield* lab.send("a", "b", "c")
    yield* lab.start({}, (message) =>
      message.id === "a" && message.attempts === 1 ? message.retry({ delay }) : undefined
    )
    yield* lab.untilEvents("Succeeded", 3)
    Check.equal("runs", lab.runs.map(({ attempts, id }) => `${id} ${attempts}`).toSorted(), [
      "a 1",
      "a 2",
      "b 1",
      "c 1"
    ])
    const [first, second] = lab.runs.filter(({ id }) => id === "a")
    const delayed = lab.entriesOf("Settling").filter(({ settlement }) => "delay" in settlement && settlement.delay > 0)
    lab.checkDelay("the retry", delay, first!.at, second!.at, { accepted: delayed.at(-1)!.at, hops: 2 })
    Check.equal("reported as kept", lab.eventsOf("Quarantined").length, 0)
    yield* lab.untilEmpty
  }),
  test("a message that comes before its time, and whose copy is refused, goes back without costing an attempt", function* (lab) {
    lab.faults.settle = ({ settlement }) =>
      settlement._tag === "Release" && settlement.delay > 0 ? refused : undefined
    const due = lab.now() + 3 * lab.unit
    yield* lab.publish("a", { notBefore: due })
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1 }) }, () => Effect.fail(new Error("no")))
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.isTrue("not before its time", lab.runs[0]!.at >= due, lab.runs[0]!.at - due)
    Check.equal(
      "attempts",
      lab.runs.map(({ attempts }) => attempts),
      [1, 2]
    )
    Check.equal("reason", letter!.metadata.deadLetter?.reason, "retries-exhausted")
  }),
  test("a message whose ack is refused is not run again, and is acked when the broker takes it", function* (lab) {
    fails(lab, "Ack", refused, 2)
    yield* lab.send("a", "b", "c")
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 60_000 }) })
    yield* lab.untilEvents("Quarantined", 2)
    yield* lab.untilEvents("Succeeded", 3)
    yield* lab.quiet()
    Check.equal("runs", lab.runs.length, 3)
    yield* lab.untilEmpty
  }),
  test(
    "after its last run, a message whose connection breaks in quarantine is not run again",
    (lab) => losesKept(lab, lab.harness.cutConnections!),
    Needs.boundConnections
  ),
  test(
    "after its last run, a message whose lease ends in quarantine is not run again",
    (lab) => losesKept(lab, unextended(lab, broken("Timeout"))),
    Needs.lease
  ),
  test(
    "after its last run, a message whose lease is said to be lost in quarantine is not run again",
    (lab) => losesKept(lab, unextended(lab, gone)),
    Needs.all(Needs.lease, Needs.lacks("connectionBound"))
  )
]
