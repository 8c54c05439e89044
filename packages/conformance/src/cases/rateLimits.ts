/** How many handler runs of a consumer begin in a time. */
import { BatchPolicy, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"

const test = Case.inGroup("rate limits")

const ids = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`)

/** When the runs of the handler began; the messages of a batch share one. */
const starts = ({ runs }: Lab, perRun: number) => runs.flatMap(({ at }, index) => (index % perRun === 0 ? [at] : []))

/** Checks that no more runs began in any window. */
const checkWindows = (lab: Lab, times: ReadonlyArray<number>, max: number, per: number): void => {
  for (const [index, at] of times.entries())
    if (index >= max) lab.checkNotEarly(`run ${index + 1}, after run ${index + 1 - max}`, per, times[index - max]!, at)
}

export const cases: ReadonlyArray<Case.Case> = [
  test("no more handler runs begin in any window than the limit allows", function* (lab) {
    const per = 2 * lab.unit
    yield* lab.send(...ids(9))
    yield* lab.start({ rateLimit: { max: 3, per }, concurrency: 9 })
    yield* lab.untilEvents("Succeeded", 9)
    checkWindows(lab, starts(lab, 1), 3, per)
  }),
  test("a batch is one run of the limit", function* (lab) {
    const [per, size] = [2 * lab.unit, 2]
    yield* lab.send(...ids(8))
    const batch = BatchPolicy.make({ maxBatchSize: size, maxBatchTimeout: 60_000 })
    yield* lab.startBatch({ rateLimit: { max: 2, per }, batch, concurrency: 4 })
    yield* lab.untilEvents("Succeeded", 8)
    checkWindows(lab, starts(lab, size), 2, per)
  }),
  test("an immediate retry is a run of the limit; without room for it, the failure counts", function* (lab) {
    const per = 2 * lab.unit
    yield* lab.send("a")
    const retry = RetryPolicy.make({ immediate: 3, maxRetries: 5 })
    yield* lab.start({ rateLimit: { max: 2, per }, retry }, () =>
      lab.runs.length < 4 ? Effect.fail(new Error("not yet")) : undefined
    )
    yield* lab.untilEvents("Succeeded", 1)
    // The fourth run is an immediate retry only if the first two began in the same millisecond.
    const attempts = lab.runs.map((run) => run.attempts)
    Check.equal("attempts", attempts.slice(0, 3), [1, 1, 2])
    checkWindows(lab, starts(lab, 1), 2, per)
  }),
  test("while the limit holds, the broker keeps the messages for other consumers", function* (lab) {
    const count = 8
    yield* lab.send(...ids(count))
    yield* lab.start({ rateLimit: { max: 1, per: "1 hour" }, concurrency: 4, prefetch: 10 })
    yield* lab.untilEvents("Succeeded", 1)
    const other = yield* lab.another
    yield* other.start({ concurrency: 4 })
    yield* other.untilEvents("Succeeded", count - 1)
    Check.equal("runs of the limited one", lab.runs.length, 1)
  }),
  test("a drain does not wait for the limit: what has not begun goes back", function* (lab) {
    yield* lab.send("a")
    const retry = RetryPolicy.make({ immediate: 1, maxRetries: 1 })
    const consumer = yield* lab.start({ rateLimit: { max: 1, per: "1 hour" }, retry }, () =>
      Effect.fail(new Error("not yet"))
    )
    yield* lab.untilEvents("RetryScheduled", 1)
    const { complete } = yield* consumer.drain(lab.recovery)
    Check.equal("complete", complete, true)
    Check.equal("runs", lab.runs.length, 1)
    yield* lab.untilPending({ ready: 1, inFlight: 0 })
  })
]
