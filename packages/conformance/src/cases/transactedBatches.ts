/** Transactions of batches, and of sends without an ack. */
import { BatchPolicy, Transaction } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { begin, checkDone, checkRuns, handler, no, sentTo, test } from "../internal/transactions.ts"
import * as Port from "../Port.ts"

export const cases: ReadonlyArray<Case.Case> = [
  test("a batch is acked in one transaction, except for the messages that it retries", function* (lab) {
    yield* lab.send("a", "b", "c")
    const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 60_000 })
    yield* lab.startBatch({ batch }, (given) =>
      Effect.scoped(
        Effect.gen(function* () {
          const work = yield* begin(lab)
          const isFirst = given.messages.some(({ id }) => id === "a")
          if (isFirst) given.messages.find(({ id }) => id === "b")?.retry()
          yield* Transaction.within(given, work.value)
          for (const { id } of given.messages) {
            if (isFirst && id === "b") continue
            yield* work.write(id)
            yield* work.send(id)
          }
          yield* work.commit
        })
      )
    )
    yield* lab.until("the end of the first batch", () => lab.eventsOf("Succeeded").length === 2)
    // Two more, so the batch of the retry is full.
    yield* lab.send("d", "e")
    yield* checkDone(lab, ["a", "b", "c", "d", "e"])
    Check.equal(
      "retries",
      lab.eventsOf("RetryScheduled").map(({ id }) => id),
      ["b"]
    )
  }),
  test("a batch whose transaction is rolled back is redelivered whole", function* (lab) {
    yield* lab.send("a", "b", "c")
    const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 1000 })
    yield* lab.startBatch({ batch }, (given) =>
      Effect.scoped(
        Effect.gen(function* () {
          const work = yield* begin(lab)
          yield* Transaction.within(given, work.value)
          for (const { id } of given.messages) {
            yield* work.write(id)
            yield* work.send(id)
          }
          yield* given.messages.some(({ attempts }) => attempts === 1) ? no : work.commit
        })
      )
    )
    yield* checkDone(lab, ["a", "b", "c"])
    Check.equal("redelivered", lab.runs.filter(({ attempts }) => attempts === 2).length, 3)
    Check.equal("failed attempts", lab.eventsOf("AttemptFailed").length, 3)
  }),
  test("a message that is sent in a transaction without an ack exists if that is committed", function* (lab) {
    for (const end of ["rollback", "commit"] as const) {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const work = yield* begin(lab)
          yield* work.send(end)
          yield* lab.quiet()
          yield* work[end]
        })
      )
    }
    yield* lab.quiet()
    const sent = yield* Port.oldest(lab.broker, sentTo(lab), 2)
    Check.equal(
      "messages",
      sent.map(({ metadata }) => metadata.id),
      ["commit"]
    )
  }),
  test("all messages of a batch that is sent in a transaction exist if that is committed", function* (lab) {
    const work = yield* begin(lab)
    const producer = yield* lab.producer(sentTo(lab))
    const ids = ["a", "b", "c"]
    const sent = yield* producer.within(work.value).sendBatch(ids.map((id) => ({ id, body: id })))
    Check.equal("ids", sent, ids)
    yield* work.commit
    yield* lab.untilPending({ ready: ids.length }, sentTo(lab))
  }),
  test("a message that is acked in a transaction without a send is done if that is committed", function* (lab) {
    yield* lab.send("a")
    yield* lab.start(
      {},
      handler(lab, (work, message) =>
        Effect.andThen(Transaction.within(message, work.value), message.attempts === 1 ? work.rollback : work.commit)
      )
    )
    yield* lab.untilRuns(2)
    yield* lab.untilEmpty
    yield* lab.quiet()
    checkRuns(
      lab,
      [
        ["a", 1],
        ["a", 2]
      ],
      1
    )
  })
]
