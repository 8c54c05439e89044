/** How messages are collected into batches. */
import { BatchPolicy } from "@requeue/core"
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

/** Checks the sizes of the batches, unless the machine was so late that a message missed the first one. */
const inBatches = (lab: Lab, expected: ReadonlyArray<number>) =>
  lab.checkTimely("sizes", sizes(lab), expected, begun(lab))

const ids = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)

const begun = (lab: Lab) => lab.arrivals()[0]!.at

const arrival = (lab: Lab, id: string) => lab.arrivals().find(({ delivery }) => delivery.metadata.id === id)!.at

export const cases: ReadonlyArray<Case.Case> = [
  test("a full batch is handed over at once", function* (lab) {
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 4, maxBatchTimeout: 60_000 }) })
    yield* lab.send(...ids(8))
    yield* lab.untilRuns(8)
    Check.equal("sizes", sizes(lab), [4, 4])
    for (const last of [3, 7]) lab.checkDelay("the batch", 0, lab.arrivals()[last]!.at, lab.runs[last]!.at)
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
    inBatches(lab, [2])
    lab.checkDelay("the batch", timeout, begun(lab), lab.runs[0]!.at)
  }),
  test("the timeout counts from the first message: it is no debounce", function* (lab) {
    const timeout = 5 * lab.unit
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: timeout }) })
    yield* lab.send("a")
    yield* Effect.sleep(2 * lab.unit)
    yield* lab.send("b")
    yield* lab.untilRuns(2)
    inBatches(lab, [2])
    lab.checkDelay("the batch", timeout, begun(lab), lab.runs[0]!.at)
  }),
  test("a timer ends with its batch: the next one has its full time", function* (lab) {
    const timeout = 5 * lab.unit
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: timeout }) })
    yield* lab.send("a")
    yield* Effect.sleep(2 * lab.unit)
    yield* lab.send("b")
    yield* lab.untilRuns(2)
    yield* lab.send("c")
    yield* lab.untilRuns(3)
    inBatches(lab, [2, 1])
    // On a late machine, the third message may join the second one.
    if (sizes(lab)[0] === 2) lab.checkDelay("the second batch", timeout, arrival(lab, "c"), lab.runs[2]!.at)
  }),
  test("with timeout 0, what is there is handed over at once", function* (lab) {
    yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: 0 }) })
    yield* lab.send("a")
    yield* lab.untilRuns(1)
    lab.checkDelay("the batch", 0, arrival(lab, "a"), lab.runs[0]!.at)
  }),
  test(
    "a delayed message joins a batch when it is due, after waiting messages",
    function* (lab) {
      yield* lab.startBatch({ batch: BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 60_000 }) })
      yield* lab.send("a", "b")
      yield* lab.until("two that wait", () => lab.arrivals().length === 2)
      yield* lab.sendDelayed("late", lab.unit)
      yield* lab.untilRuns(3)
      Check.equal("batch", batches(lab), [["a", "b", "late"]])
    },
    Needs.has("ordered")
  )
]
