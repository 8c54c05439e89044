/** How much a consumer does at a time, and how many messages it holds. */
import { BatchPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept, checkOnce } from "../internal/kept.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("concurrency")

const ids = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)

export const cases: ReadonlyArray<Case.Case> = [
  test("no more than concurrency batches are in progress", function* (lab) {
    let [running, most] = [0, 0]
    yield* lab.send(...ids(12))
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 0 }), concurrency: 3 }, () =>
      Effect.gen(function* () {
        most = Math.max(most, ++running)
        yield* lab.until("three batches at a time", () => most >= 3)
        yield* Effect.sleep(lab.unit)
        running--
      })
    )
    yield* lab.untilEvents("Succeeded", 12)
    Check.equal("batches at a time", most, 3)
  }),
  test("single messages run one at a time by default", function* (lab) {
    let [running, most] = [0, 0]
    yield* lab.send(...ids(5))
    yield* lab.start({}, () =>
      Effect.gen(function* () {
        most = Math.max(most, ++running)
        yield* Effect.sleep(20)
        running--
      })
    )
    yield* lab.untilEvents("Succeeded", 5)
    Check.equal("runs at a time", most, 1)
  }),
  test("a slow batch does not keep the next from being filled and run", function* (lab) {
    const gate = yield* Deferred.make<void>()
    yield* lab.startBatch(
      { batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 60_000 }), concurrency: 2 },
      (batch) => (batch.messages.some(({ id }) => id === "slow") ? Deferred.await(gate) : undefined)
    )
    yield* lab.send("slow", "slower")
    yield* lab.untilRuns(2)
    yield* lab.send("c", "d", "e", "f")
    yield* lab.untilRuns(6)
    const done = yield* lab.untilEvents("Succeeded", 4)
    Check.equal("done", done.map(({ id }) => id).toSorted(), ["c", "d", "e", "f"])
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 6)
  }),
  test("what a consumer holds is bounded, and what it does not hold waits in the broker", function* (lab) {
    const gate = yield* Deferred.make<void>()
    const most = 2 * (2 + 1)
    const begun = lab.now()
    yield* lab.send(...ids(20))
    const consumer = yield* lab.startBatch(
      { batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 60_000 }), concurrency: 2 },
      () => Deferred.await(gate)
    )
    yield* lab.untilRuns(4)
    yield* lab.quiet()
    const { buffered, inProgress } = consumer.stats()
    Check.isTrue(`at most ${most} messages are held`, buffered + inProgress <= most, { buffered, inProgress })
    Check.equal("in progress", inProgress, 4)
    Check.isTrue(
      "credit",
      lab.entriesOf("Credit").every(({ limit }) => limit <= most),
      lab.entriesOf("Credit")
    )
    // A message that is redelivered after its lease has ended was sent before.
    if (checkOnce(lab, begun)) {
      // One may be in flight.
      const isCounted = Effect.map(lab.harness.pending(lab.queue), ({ ready }) =>
        ready === undefined || ready === 20 - lab.arrivals().length ? true : undefined
      )
      yield* Wait.found("the others in the broker", isCounted, { within: lab.recovery })
      Check.isTrue("the broker sent no more", lab.arrivals().length <= most, lab.arrivals().length)
    }
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 20)
  }),
  test("a message handler with a batch policy runs a batch side by side, each message for itself", function* (lab) {
    yield* lab.send("a", "b", "c")
    yield* lab.start({ batch: BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 60_000 }) }, (message) =>
      Effect.gen(function* () {
        if (message.attempts > 1) return
        yield* lab.until("all three run", () => lab.runs.length >= 3)
        if (message.id === "b") yield* Effect.fail(new Error("no"))
      })
    )
    yield* lab.untilEvents("RetryScheduled", 1)
    const idsOf = (tag: "Succeeded" | "RetryScheduled") =>
      new Set(lab.eventsOf(tag).flatMap(({ attempts, id }) => (attempts === 1 ? [id] : [])))
    yield* lab.until("both acks", () => idsOf("Succeeded").size >= 2)
    Check.equal("acked", idsOf("Succeeded"), new Set(["a", "c"]))
    Check.equal("retried", idsOf("RetryScheduled"), new Set(["b"]))
  }),
  test("without prefetch, no more is in flight than handlers work on", function* (lab) {
    const gate = yield* Deferred.make<void>()
    const begun = lab.now()
    yield* lab.send(...ids(20))
    const consumer = yield* lab.startBatch(
      { batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 60_000 }), concurrency: 2, prefetch: 0 },
      () => Deferred.await(gate)
    )
    yield* lab.untilRuns(4)
    yield* lab.quiet()
    checkKept(lab, "deliveries", lab.arrivals().length, 4, begun)
    Check.equal("waiting", consumer.stats().buffered, 0)
    Check.equal("most credit", Math.max(...lab.entriesOf("Credit").map(({ limit }) => limit)), 4)
    yield* lab.untilPending({ ready: 16, inFlight: 4 })
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 20)
  }),
  test("without prefetch, no message waits behind a slow one while another consumer is idle", function* (lab) {
    const gate = yield* Deferred.make<void>()
    for (const _ of [1, 2]) {
      yield* lab.start({ prefetch: 0 }, () => (lab.runs.length === 1 ? Deferred.await(gate) : undefined))
    }
    yield* lab.send(...ids(10))
    yield* lab.untilEvents("Succeeded", 9)
    // The other consumer runs a message whose lease has ended.
    checkKept(lab, "runs", lab.runs.length, 10, lab.runs[0]!.at)
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 10)
    yield* lab.untilEmpty
  }),
  test("by default, one batch waits in addition to those in progress", function* (lab) {
    const gate = yield* Deferred.make<void>()
    yield* lab.send(...ids(18))
    const consumer = yield* lab.startBatch(
      { batch: BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 60_000 }), concurrency: 2 },
      () => Deferred.await(gate)
    )
    yield* lab.untilRuns(6)
    yield* lab.until("the batch that waits", () => consumer.stats().buffered === 3)
    Check.equal("most credit", Math.max(...lab.entriesOf("Credit").map(({ limit }) => limit)), 9)
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 18)
  })
]
