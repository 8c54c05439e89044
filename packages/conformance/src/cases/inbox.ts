/** The inbox: a message that is delivered again after its transaction was committed has no second effect. */
import { BatchPolicy, Broker, Consumer, type Handler, RetryPolicy, Transaction } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { all, begin, handler, neighbor, no, rowsOf, sentTo } from "../internal/transactions.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

const needs = Needs.all(Needs.transactions, Needs.has("inbox"))

const test = (name: string, body: Case.Body): Case.Case => Case.inGroup("inbox")(name, body, needs)

const once = RetryPolicy.make({ maxRetries: 0 })

/** Checks that each message has had its effects once, and that none is left, or was dead-lettered. */
const checkOnce = (lab: Lab, ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* lab.untilEmpty
    yield* lab.quiet()
    yield* lab.untilEmpty
    Check.equal("rows", yield* rowsOf(lab), ids.toSorted())
    yield* lab.untilPending({ ready: ids.length }, sentTo(lab))
    const sent = yield* Port.oldest(lab.broker, sentTo(lab), ids.length + 1)
    Check.equal("messages sent", sent.map(({ metadata }) => metadata.id).toSorted(), ids.toSorted())
    Check.equal("dead letters", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
  })

/** Makes a handler that acks its batch, writes and sends each message, and commits. */
const commitBatch = (lab: Lab) => (given: Handler.Batch<unknown>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const work = yield* begin(lab)
      yield* Transaction.within(given, work.value)
      for (const { id } of given.messages) {
        yield* work.write(id)
        yield* work.send(id)
      }
      yield* work.commit
    })
  )

export const cases: ReadonlyArray<Case.Case> = [
  test("a second copy of a message that a transaction has done is acked, and has no effect", function* (lab) {
    const errors: Array<unknown> = []
    yield* lab.start(
      { retry: once },
      handler(lab, (work, message) =>
        Effect.andThen(
          Effect.tapError(all(work, message), (error) => Effect.sync(() => errors.push(error))),
          work.commit
        )
      )
    )
    yield* lab.publish("a")
    yield* lab.untilEvents("Succeeded", 1)
    yield* lab.publish("a")
    yield* lab.untilEvents("Succeeded", 2)
    yield* checkOnce(lab, ["a"])
    Check.isTrue("the error", errors.length === 1 && errors[0] instanceof Transaction.AlreadyDone, errors)
    Check.equal("failed attempts", lab.eventsOf("AttemptFailed").length, 0)
  }),
  test("a second copy of a message is acked although its handler hides that it was done", function* (lab) {
    yield* lab.start(
      { retry: once },
      handler(lab, (work, message) =>
        Effect.andThen(all(work, message), work.commit).pipe(
          Effect.catch((error) => (error instanceof Transaction.AlreadyDone ? work.rollback : Effect.fail(error)))
        )
      )
    )
    yield* lab.publish("a")
    yield* lab.untilEvents("Succeeded", 1)
    yield* lab.publish("a")
    yield* lab.untilEvents("Succeeded", 2)
    yield* checkOnce(lab, ["a"])
  }),
  test("a batch with a message that was done uses up no attempt of the others", function* (lab) {
    const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 1000 })
    yield* lab.startBatch({ batch, retry: once }, commitBatch(lab))
    yield* lab.publish("a")
    yield* lab.untilEvents("Succeeded", 1)
    for (const id of ["b", "a", "c"]) yield* lab.publish(id)
    yield* lab.untilEvents("Succeeded", 4)
    yield* checkOnce(lab, ["a", "b", "c"])
    Check.equal("failed attempts", lab.eventsOf("AttemptFailed").length, 0)
  }),
  test("two copies of a message in one batch have one effect", function* (lab) {
    const batch = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 1000 })
    for (const id of ["a", "a"]) yield* lab.publish(id)
    yield* lab.startBatch({ batch, retry: once }, commitBatch(lab))
    yield* lab.untilEvents("Succeeded", 2)
    yield* checkOnce(lab, ["a"])
  }),
  test("two copies of a message in one transaction have one effect", function* (lab) {
    const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 1000 })
    for (const id of ["a", "a", "b"]) yield* lab.publish(id)
    yield* lab.startBatch({ batch, retry: once }, (given: Handler.Batch<unknown>) =>
      Effect.scoped(
        Effect.gen(function* () {
          const work = yield* begin(lab)
          for (const message of given.messages) yield* all(work, message)
          yield* work.commit
        })
      )
    )
    yield* lab.untilEvents("Succeeded", 3)
    yield* checkOnce(lab, ["a", "b"])
    Check.equal("failed attempts", lab.eventsOf("AttemptFailed").length, 0)
  }),
  test("a message that a handler only acks is not recorded: its copy has its effect", function* (lab) {
    yield* lab.start(
      { retry: once },
      handler(lab, (work, message) =>
        lab.runs.length === 1 ? Effect.void : Effect.andThen(all(work, message), work.commit)
      )
    )
    yield* lab.publish("a")
    yield* lab.untilEvents("Succeeded", 1)
    yield* lab.publish("a")
    yield* lab.untilEvents("Succeeded", 2)
    yield* checkOnce(lab, ["a"])
  }),
  test("a message of a broker in another namespace has its effect, although its queue and id are the same", function* (lab) {
    const work = handler(lab, (work, message) => Effect.andThen(all(work, message), work.commit))
    const first = yield* lab.start({ retry: once }, work)
    yield* lab.publish("a")
    yield* lab.untilEvents("Succeeded", 1)
    yield* first.drain()
    const other = yield* neighbor(lab)
    yield* Effect.provideService(Consumer.start(lab.queue, { retry: once }, work), Broker.Broker, other)
    yield* lab.publish("a")
    yield* lab.untilPending({ ready: 2 }, sentTo(lab))
    Check.equal("rows", yield* rowsOf(lab), ["a", "a"])
  }),
  test("a dead letter whose transaction was rolled back is handled after its redrive", function* (lab) {
    yield* lab.send("a")
    yield* lab.start(
      { retry: once },
      handler(lab, (work, message) => Effect.andThen(all(work, message), lab.runs.length === 1 ? no : work.commit))
    )
    yield* lab.untilDeadLetters(1)
    const letters = yield* lab.letters
    yield* letters.redrive()
    yield* lab.untilEvents("Succeeded", 1)
    yield* checkOnce(lab, ["a"])
  }),
  Case.inGroup("inbox")(
    "a connection that breaks between the commit and the ack repeats no effect",
    function* (lab) {
      yield* lab.send("a")
      yield* lab.start(
        { retry: RetryPolicy.make({ maxRetries: 10 }) },
        handler(lab, (work, message) =>
          Effect.gen(function* () {
            yield* all(work, message)
            yield* work.commit
            if (lab.runs.length === 1) yield* lab.harness.cutConnections!
          })
        )
      )
      yield* lab.untilRuns(1)
      yield* checkOnce(lab, ["a"])
    },
    Needs.all(needs, Needs.cutConnections)
  )
]
