/** Messages with a key: they are handled one at a time, in the order of their sends, also through retries. */
import { Backoff, BrokerError, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkOrder, failing, idsOf, keyOf, no, once, runsOf, sendKeyed, test, watch } from "../internal/keys.ts"
import * as Needs from "../Needs.ts"

export const cases: ReadonlyArray<Case.Case> = [
  test("messages of a key are handled one at a time in the order of their sends, and keys do not wait for each other", function* (lab) {
    const ids = idsOf(["a", "b", "c"], 6)
    yield* sendKeyed(lab, ...ids)
    const order = watch()
    const gate = yield* Deferred.make<void>()
    const keys: Array<string> = []
    yield* lab.start({ concurrency: 10 }, (message) => {
      keys.push(String(message.key))
      return order.during(message, message.id === "a0" ? Deferred.await(gate) : Effect.void)
    })
    yield* lab.untilEvents("Succeeded", 12)
    Check.equal("behind the first", runsOf(lab, "a"), ["a0.1"])
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", ids.length)
    checkOrder(order, ids)
    Check.equal("keys", keys.map(String).toSorted(), ids.map(keyOf).toSorted())
    yield* lab.untilEmpty
  }),
  test(
    "messages without a key do not wait for those with one",
    function* (lab) {
      yield* sendKeyed(lab, "a0", "a1")
      yield* lab.send("x", "y")
      const gate = yield* Deferred.make<void>()
      yield* lab.start({ concurrency: 10 }, ({ id }) => (id === "a0" ? Deferred.await(gate) : Effect.void))
      yield* lab.untilEvents("Succeeded", 2)
      Check.equal("behind the first", runsOf(lab, "a"), ["a0.1"])
      yield* Deferred.succeed(gate, undefined)
      yield* lab.untilEvents("Succeeded", 4)
    },
    Needs.has("parkedKeys")
  ),
  test("a failed message holds up the later messages of its key until its last retry, and no other key", function* (lab) {
    yield* sendKeyed(lab, "a0", "a1", "b0", "b1")
    const order = watch()
    const retry = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.constant(2 * lab.unit) })
    yield* lab.start({ concurrency: 10, retry }, (message) =>
      order.during(message, message.id === "a0" && message.attempts < 4 ? no : Effect.void)
    )
    yield* lab.untilEvents("Succeeded", 4)
    checkOrder(order, ["a0", "a1", "b0", "b1"])
    Check.equal("order of all", order.ended, ["b0", "b1", "a0", "a1"])
    Check.equal("runs", runsOf(lab, "a"), ["a0.1", "a0.2", "a0.3", "a0.4", "a1.1"])
  }),
  test("a message that is sent while an earlier one of its key waits for its retry waits too", function* (lab) {
    yield* sendKeyed(lab, "a0")
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(4 * lab.unit) })
    yield* lab.start({ retry }, ({ attempts, id }) => (id === "a0" && attempts === 1 ? no : Effect.void))
    yield* lab.untilEvents("RetryScheduled", 1)
    yield* sendKeyed(lab, "a1")
    yield* lab.untilEvents("Succeeded", 2)
    Check.equal("runs", runsOf(lab, "a"), ["a0.1", "a0.2", "a1.1"])
  }),
  test("a dead letter makes way for the next message of its key", function* (lab) {
    yield* sendKeyed(lab, "a0", "a1", "a2")
    yield* lab.start({ concurrency: 10, retry: once }, failing("a0"))
    yield* lab.untilEvents("Succeeded", 2)
    Check.equal("runs", runsOf(lab, "a"), ["a0.1", "a1.1", "a2.1"])
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("letter", letter!.metadata.id, "a0")
    Check.equal("key", letter!.place?.key, "a")
    yield* lab.untilEmpty
  }),
  test("batches keep the order of each key through failures", function* (lab) {
    const ids = idsOf(["a", "b"], 6)
    yield* sendKeyed(lab, ...ids)
    const done: Array<string> = []
    const failed = new Set<string>()
    yield* lab.startBatch({ batch: { maxBatchSize: 4, maxBatchTimeout: lab.unit }, concurrency: 3 }, ({ messages }) => {
      const stopped = new Set<string>()
      for (const message of messages) {
        const isNew = failed.size !== failed.add(message.id).size
        // Each fails once, and with it those after it.
        if ((isNew && Number(message.id.slice(1)) % 2 === 0) || stopped.has(keyOf(message.id))) {
          stopped.add(keyOf(message.id))
          message.retry()
        } else done.push(message.id)
      }
    })
    yield* lab.untilEvents("Succeeded", ids.length)
    for (const key of ["a", "b"]) {
      const of = (some: ReadonlyArray<string>) => some.filter((id) => keyOf(id) === key)
      Check.equal(`order of ${key}`, of(done), of(ids))
    }
  }),
  test("two consumers share keys, and no key's order is lost", function* (lab) {
    const ids = idsOf(["a", "b", "c", "d"], 10)
    const order = watch()
    const other = yield* lab.another
    const work = (message: { readonly id: string; readonly attempts: number }) =>
      order.during(message, message.attempts === 1 && message.id.endsWith("3") ? no : Effect.sleep(1))
    yield* lab.start({ concurrency: 3 }, work)
    yield* other.start({ concurrency: 3 }, work)
    yield* sendKeyed(lab, ...ids)
    yield* lab.until("all", () => order.ended.length === ids.length)
    checkOrder(order, ids)
  }),
  Case.inGroup("keys")(
    "a broker that does not keep the order of keys refuses a message with a key, with the reason and a remedy",
    function* (lab) {
      const producer = yield* lab.producer()
      const error = yield* Effect.flip(producer.send("a0", { id: "a0", key: "a" }))
      Check.isTrue("a BrokerError", error instanceof BrokerError.BrokerError, error)
      const { detail, queue, reason, remedy } = error as BrokerError.BrokerError // It was checked above.
      Check.equal("reason and queue", [reason, queue], ["Unsupported", lab.queue])
      Check.isTrue("detail and remedy", detail !== "" && remedy !== undefined, { detail, remedy })
      yield* lab.quiet()
      yield* lab.untilEmpty
    },
    Needs.lacks("keyedOrder")
  )
]
