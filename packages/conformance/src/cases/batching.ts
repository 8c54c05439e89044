/** How messages are gathered into batches. */
import * as BatchPolicy from "@requeue/core/BatchPolicy"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("batching")

/** The ids of every batch, in the order in which the batches began. */
const batches = (lab: Lab) => {
  const groups = new Map<number, Array<string>>()
  for (const { batch, id } of lab.runs) groups.set(batch, [...(groups.get(batch) ?? []), id])
  return [...groups.values()]
}

const sizes = (lab: Lab) => batches(lab).map((ids) => ids.length)

const ids = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)

/** When a delivery arrived. */
const arrival = (lab: Lab, id: string) => lab.arrivals().find(({ delivery }) => delivery.metadata.id === id)!.at

export const cases: ReadonlyArray<Case.Case> = [
  test("a full batch is handed over at once", function* (lab) {
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 4, maxBatchTimeout: 20_000 }) })
    yield* lab.send(...ids(8))
    yield* lab.untilRuns(8)
    Check.equal("sizes", sizes(lab), [4, 4])
  }),
  test("a batch is never larger than maxBatchSize, and never empty", function* (lab) {
    yield* lab.send(...ids(25))
    const seen: Array<number> = []
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: lab.unit }) }, (batch) => {
      seen.push(batch.messages.length)
    })
    yield* lab.untilRuns(25)
    yield* lab.quiet(3 * lab.unit)
    Check.isTrue(
      "sizes from 1 to 10",
      seen.every((size) => size >= 1 && size <= 10),
      seen
    )
    Check.equal(
      "messages",
      seen.reduce((sum, size) => sum + size, 0),
      25
    )
  }),
  test("a part of a batch is handed over when its first message has waited long enough", function* (lab) {
    const timeout = 2 * lab.unit
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: timeout }) })
    yield* lab.send("a", "b")
    yield* lab.untilRuns(2)
    Check.equal("sizes", sizes(lab), [2])
    lab.checkDelay("the batch", timeout, arrival(lab, "a"), lab.runs[0]!.at)
  }),
  test("the timeout counts from the first message: it is no debounce", function* (lab) {
    const timeout = 3 * lab.unit
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: timeout }) })
    yield* lab.send("a")
    yield* Effect.sleep(2 * lab.unit)
    yield* lab.send("b")
    yield* lab.untilRuns(2)
    Check.equal("sizes", sizes(lab), [2])
    lab.checkDelay("the batch", timeout, arrival(lab, "a"), lab.runs[0]!.at)
  }),
  test("a timer ends with its batch: the next one has its full time", function* (lab) {
    const timeout = 3 * lab.unit
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: timeout }) })
    yield* lab.send("a")
    yield* Effect.sleep(2 * lab.unit)
    yield* lab.send("b")
    yield* lab.untilRuns(2)
    yield* lab.send("c")
    yield* lab.untilRuns(3)
    Check.equal("sizes", sizes(lab), [2, 1])
    lab.checkDelay("the second batch", timeout, arrival(lab, "c"), lab.runs[2]!.at)
  }),
  test("with timeout 0, what is there is handed over at once", function* (lab) {
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: 0 }) })
    yield* lab.send("a")
    yield* lab.untilRuns(1)
    lab.checkDelay("the batch", 0, arrival(lab, "a"), lab.runs[0]!.at)
  }),
  test(
    "a delayed message joins a batch when it is due, behind those that wait",
    function* (lab) {
      yield* lab.sendDelayed("late", 2 * lab.unit)
      yield* lab.send("a", "b")
      yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 20_000 }) })
      yield* lab.untilRuns(3)
      Check.equal("batch", batches(lab), [["a", "b", "late"]])
    },
    Needs.has("ordered")
  ),
  test("no more than concurrency batches are in progress", function* (lab) {
    let [running, most] = [0, 0]
    yield* lab.send(...ids(12))
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 0 }), concurrency: 3 }, () =>
      Effect.gen(function* () {
        most = Math.max(most, ++running)
        yield* Effect.sleep(lab.unit)
        running--
      })
    )
    yield* lab.untilEvents("Succeeded", 12)
    Check.equal("batches at a time", most, 3)
  }),
  test("single messages run one at a time unless concurrency says otherwise", function* (lab) {
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
      { batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 20_000 }), concurrency: 2 },
      (batch) => (batch.messages.some(({ id }) => id === "slow") ? Deferred.await(gate) : undefined)
    )
    yield* lab.send("slow", "slower")
    yield* lab.untilRuns(2)
    yield* lab.send("c", "d", "e", "f")
    yield* lab.untilRuns(6)
    Check.equal(
      "done",
      lab
        .eventsOf("Succeeded")
        .map(({ id }) => id)
        .toSorted(),
      ["c", "d", "e", "f"]
    )
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 6)
  }),
  test("what a consumer holds is bounded, and what it does not hold waits in the broker", function* (lab) {
    const gate = yield* Deferred.make<void>()
    const most = 2 * (2 + 1)
    yield* lab.send(...ids(20))
    const consumer = yield* lab.startBatch(
      { batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 20_000 }), concurrency: 2 },
      () => Deferred.await(gate)
    )
    yield* lab.untilRuns(4)
    yield* lab.quiet()
    const { buffered, inProgress } = consumer.stats()
    Check.isTrue(`at most ${most} messages are held`, buffered + inProgress <= most, { buffered, inProgress })
    Check.equal("in progress", inProgress, 4)
    Check.isTrue("the broker sent no more", lab.arrivals().length <= most, lab.arrivals().length)
    Check.isTrue(
      "credit",
      lab.entriesOf("Credit").every(({ limit }) => limit <= most),
      lab.entriesOf("Credit")
    )
    yield* lab.untilPending({ ready: 20 - lab.arrivals().length })
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 20)
  }),
  test("a message handler with a batch policy runs a batch side by side, each message for itself", function* (lab) {
    yield* lab.send("a", "b", "c")
    yield* lab.start({ batch: BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 20_000 }) }, (message) =>
      Effect.gen(function* () {
        if (message.attempts > 1) return
        yield* lab.until("all three run", () => lab.runs.length >= 3)
        if (message.id === "b") yield* Effect.fail(new Error("no"))
      })
    )
    yield* lab.untilEvents("RetryScheduled", 1)
    Check.equal(
      "acked",
      lab
        .eventsOf("Succeeded")
        .map(({ id }) => id)
        .toSorted(),
      ["a", "c"]
    )
    Check.equal(
      "retried",
      lab.eventsOf("RetryScheduled").map(({ id }) => id),
      ["b"]
    )
  })
]
