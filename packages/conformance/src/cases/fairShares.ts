/** Messages with `fairBy`: consumers take those of each value in turn. The first letter of an id is its `fairBy`. */
import { Backoff, BrokerError, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { manyOf, sendShared, shareOf, test } from "../internal/shares.ts"
import { idsOf, no, once } from "../internal/keys.ts"
import * as Needs from "../Needs.ts"

/** One message at a time, and none waits in the process. */
const alone = { concurrency: 1, prefetch: 0 } as const

/** The positions of these messages among the runs. */
const positionsOf = (runs: ReadonlyArray<{ readonly id: string }>, fairBy: string): ReadonlyArray<number> =>
  runs.flatMap(({ id }, index) => (shareOf(id) === fairBy ? [index] : []))

export const cases: ReadonlyArray<Case.Case> = [
  test("the messages of each fairBy are taken in turn, and so are those without one", function* (lab) {
    yield* sendShared(lab, ...manyOf("a", 40), ...manyOf("b", 3))
    yield* lab.send("n0", "n1", "n2")
    yield* lab.start(alone)
    yield* lab.untilEvents("Succeeded", 46)
    // A consumer may learn from its first message that there are shares.
    const first = 3 * 3 + 1
    for (const share of ["b", "n"])
      Check.isTrue(`${share} among the first ${first}`, positionsOf(lab.runs, share).at(-1)! < first, lab.runs)
    if (!lab.capabilities.ordered) return
    for (const share of ["a", "b", "n"]) {
      const ids = lab.runs.flatMap(({ id }) => (shareOf(id) === share ? [id] : []))
      Check.equal(`order of ${share}`, ids, manyOf(share, ids.length))
    }
  }),
  test("a message does not wait for those of another fairBy that were sent before", function* (lab) {
    yield* sendShared(lab, ...manyOf("a", 30))
    const gate = yield* Deferred.make<void>()
    yield* lab.start(alone, () => (lab.runs.length === 5 ? Deferred.await(gate) : Effect.void))
    yield* lab.until("the fifth run", () => lab.runs.length === 5)
    yield* sendShared(lab, "b0", "b1")
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 32)
    Check.isTrue("b among the first 9", positionsOf(lab.runs, "b").at(-1)! < 9, lab.runs)
  }),
  test("a batch has messages of each fairBy that waits", function* (lab) {
    yield* sendShared(lab, ...manyOf("a", 12), ...manyOf("b", 12))
    const batches: Array<ReadonlyArray<string>> = []
    const batch = { maxBatchSize: 4, maxBatchTimeout: lab.unit }
    yield* lab.startBatch({ ...alone, batch }, ({ messages }) => {
      batches.push(messages.map(({ id }) => shareOf(id)))
    })
    yield* lab.untilEvents("Succeeded", 24)
    // With its first batch, a consumer may learn that there are shares.
    for (const shares of batches.slice(1, 4)) Check.equal("shares of a batch", new Set(shares).size, 2)
  }),
  test("retries, dead letters and redriven messages keep their fairBy", function* (lab) {
    yield* sendShared(lab, "a0")
    const seen: Array<string | undefined> = []
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(lab.unit) })
    yield* lab.start({ retry }, ({ fairBy }) => {
      seen.push(fairBy)
      return seen.length < 3 ? no : Effect.void
    })
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("letter", letter!.fairBy, "a")
    const { redrive } = yield* lab.letters
    yield* redrive()
    yield* lab.untilEvents("Succeeded", 1)
    Check.equal("fairBy", seen, ["a", "a", "a"])
  }),
  test(
    "messages of a key keep their order, whoever they belong to",
    function* (lab) {
      const ids = idsOf(["a", "b"], 4)
      const { sendBatch } = yield* lab.producer()
      yield* sendBatch(ids.map((id) => ({ id, body: id, fairBy: shareOf(id), key: "k" })))
      yield* lab.start({ concurrency: 4, retry: once })
      yield* lab.untilEvents("Succeeded", ids.length)
      Check.equal(
        "order",
        lab.runs.map(({ id }) => id),
        ids
      )
    },
    Needs.has("keyedOrder")
  ),
  Case.inGroup("fair shares")(
    "a broker without fair shares refuses a message with fairBy, with the reason and a remedy",
    function* (lab) {
      const producer = yield* lab.producer()
      const error = yield* Effect.flip(producer.send("a0", { id: "a0", fairBy: "a" }))
      Check.isTrue("a BrokerError", error instanceof BrokerError.BrokerError, error)
      const { detail, queue, reason, remedy } = error as BrokerError.BrokerError // It was checked above.
      Check.equal("reason and queue", [reason, queue], ["Unsupported", lab.queue])
      Check.isTrue("detail and remedy", detail !== "" && remedy !== undefined, { detail, remedy })
      const ofBatch = yield* Effect.flip(producer.sendBatch([{ body: 0 }, { body: 1, id: "a1", fairBy: "a" }]))
      Check.isTrue("the error names the entry", ofBatch.message.includes(`entries[1] (id a1): ${detail}`), ofBatch)
      yield* lab.quiet()
      yield* lab.untilEmpty
    },
    Needs.lacks("fairShares")
  )
]
