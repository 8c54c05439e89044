/** Transactions: what a handler writes and sends, and the ack of its message, happen together or not at all. */
import { RetryPolicy, Transaction } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { all, begin, checkDone, checkRuns, handler, no, rowsOf, sentTo, test } from "../internal/transactions.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

export const cases: ReadonlyArray<Case.Case> = [
  test("a transaction that is committed acks its message, and its rows and messages exist from then on", function* (lab) {
    yield* lab.send("a")
    let before: ReadonlyArray<unknown> = []
    yield* lab.start(
      {},
      handler(lab, (work, message) =>
        Effect.gen(function* () {
          yield* all(work, message)
          yield* lab.quiet()
          before = [yield* rowsOf(lab), (yield* lab.harness.pending(sentTo(lab))).ready ?? 0]
          yield* work.commit
        })
      )
    )
    yield* checkDone(lab, ["a"])
    Check.equal("seen before the commit", before, [[], 0])
    checkRuns(lab, [["a", 1]], 0)
  }),
  test("a transaction that is rolled back leaves its message in the queue, and no rows and messages", function* (lab) {
    yield* lab.send("a")
    let between: ReadonlyArray<unknown> = []
    yield* lab.start(
      {},
      handler(lab, (work, message) =>
        Effect.gen(function* () {
          if (message.attempts === 2) between = [yield* rowsOf(lab), yield* lab.harness.pending(sentTo(lab))]
          yield* all(work, message)
          if (message.attempts === 1) return yield* no
          return yield* work.commit
        })
      )
    )
    yield* checkDone(lab, ["a"])
    Check.equal("rows of the first run", between[0], [])
    checkRuns(
      lab,
      [
        ["a", 1],
        ["a", 2]
      ],
      1
    )
  }),
  test("a message whose transaction was rolled back is redelivered although its handler succeeds", function* (lab) {
    yield* lab.send("a")
    yield* lab.start(
      {},
      handler(lab, (work, message) =>
        Effect.andThen(all(work, message), message.attempts === 1 ? work.rollback : work.commit)
      )
    )
    yield* checkDone(lab, ["a"])
    checkRuns(
      lab,
      [
        ["a", 1],
        ["a", 2]
      ],
      1
    )
    Check.equal("the failure", lab.eventsOf("AttemptFailed")[0]!.error.name, "RolledBack")
  }),
  test("a message whose last attempt was rolled back is a dead letter although its handler succeeds", function* (lab) {
    yield* lab.send("a")
    const retry = RetryPolicy.make({ maxRetries: 0 })
    yield* lab.start(
      { retry },
      handler(lab, (work, message) => Effect.andThen(all(work, message), work.rollback))
    )
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("why", letter!.metadata.deadLetter!.reason, "retries-exhausted")
    yield* lab.untilEmpty
    Check.equal("rows", yield* rowsOf(lab), [])
  }),
  test("a message is done once its transaction is committed, although its handler then fails", function* (lab) {
    yield* lab.send("a", "b")
    const retry = RetryPolicy.make({ maxRetries: 0, immediate: 2 })
    yield* lab.start(
      { retry },
      handler(lab, (work, message) =>
        Effect.andThen(Effect.andThen(all(work, message), work.commit), message.id === "a" ? no : Effect.void)
      )
    )
    yield* checkDone(lab, ["a", "b"])
    checkRuns(
      lab,
      [
        ["a", 1],
        ["b", 1]
      ],
      0
    )
    Check.equal("dead letters", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
  }),
  test("when the answers to commits are lost, the messages of those that were not committed are redelivered", function* (lab) {
    const ids = ["a", "b", "c", "d", "e", "f"]
    const [committed, lost] = [ids.filter((_, index) => index % 2 === 0), ids.filter((_, index) => index % 2 === 1)]
    yield* lab.send(...ids)
    yield* lab.start(
      {},
      handler(lab, (work, message) =>
        Effect.gen(function* () {
          yield* all(work, message)
          if (message.attempts > 1) return yield* work.commit
          yield* committed.includes(message.id) ? work.commit : work.rollback
          return yield* no
        })
      )
    )
    yield* checkDone(lab, ids)
    const again = lab.runs.filter(({ attempts }) => attempts > 1)
    Check.equal("redelivered", again.map(({ id }) => id).toSorted(), lost)
    Check.equal("failed attempts", lab.eventsOf("AttemptFailed").length, lost.length)
  }),
  test("a handler that ends before its transaction does has acked nothing, or everything", function* (lab) {
    yield* lab.send("a")
    const context = yield* Effect.context()
    const timeout = 4 * lab.unit
    let first: Promise<unknown> | undefined
    const retry = RetryPolicy.make({ maxRetries: 10 })
    yield* lab.start({ handlerTimeout: timeout, retry }, (message) => {
      const late = message.attempts === 1 ? Effect.sleep(2 * timeout) : Effect.void
      const work = handler(lab, (work) => Effect.andThen(Effect.andThen(all(work, message), late), work.commit))
      // A promise goes on after the timeout.
      const run = Effect.runPromiseWith(context)(work(message))
      first ??= run.catch(() => {})
      return run
    })
    yield* lab.until("the first run", () => first !== undefined)
    yield* Effect.promise(() => first!)
    yield* checkDone(lab, ["a"])
  }),
  test("a handler that acks in a transaction after its end is refused, and the transaction rolls back", function* (lab) {
    yield* lab.send("a")
    const context = yield* Effect.context()
    const timeout = 4 * lab.unit
    const errors: Array<unknown> = []
    yield* lab.start({ handlerTimeout: timeout, retry: RetryPolicy.make({ maxRetries: 10 }) }, (message) => {
      const late = message.attempts === 1 ? Effect.sleep(2 * timeout) : Effect.void
      const work = handler(lab, (work) => Effect.andThen(Effect.andThen(late, all(work, message)), work.commit))
      return Effect.runPromiseWith(context)(
        Effect.tapError(work(message), (error) => Effect.sync(() => errors.push(error)))
      )
    })
    yield* lab.until("the error of the first run", () => errors.length > 0)
    yield* checkDone(lab, ["a"])
    Check.isTrue("the error", errors[0] instanceof Transaction.AlreadySettled && errors[0].by === "late", errors)
  }),
  test("a failed run is not repeated at once after within: the message is redelivered", function* (lab) {
    yield* lab.send("a")
    const retry = RetryPolicy.make({ maxRetries: 1, immediate: 3 })
    yield* lab.start(
      { retry },
      handler(lab, (work, message) => Effect.andThen(all(work, message), message.attempts === 1 ? no : work.commit))
    )
    yield* checkDone(lab, ["a"])
    checkRuns(
      lab,
      [
        ["a", 1],
        ["a", 2]
      ],
      1
    )
  }),
  test("a value that is no transaction is refused with a remedy, and so is a transaction that has ended", function* (lab) {
    yield* lab.send("a")
    const errors: Array<unknown> = []
    const seen = (error: unknown) => Effect.sync(() => errors.push(error))
    yield* lab.start(
      { retry: RetryPolicy.make({ maxRetries: 2 }) },
      handler(lab, (work, message) =>
        Effect.gen(function* () {
          if (message.attempts === 1) return yield* Effect.tapError(Transaction.within(message, {}), seen)
          if (message.attempts === 3) return yield* Effect.andThen(all(work, message), work.commit)
          yield* work.commit
          return yield* Effect.tapError(all(work, message), seen)
        })
      )
    )
    yield* checkDone(lab, ["a"])
    const told = errors.map((error) => [
      Reflect.get(Object(error), "reason"),
      Reflect.get(Object(error), "remedy") !== undefined
    ])
    Check.equal("errors", told, [
      ["Unsupported", true],
      ["Unsupported", true]
    ])
  }),
  test("a message that was acked, or whose transaction was named before, is refused", function* (lab) {
    yield* lab.send("acked", "twice")
    const by: Record<string, unknown> = {}
    yield* lab.start(
      { retry: RetryPolicy.make({ maxRetries: 0 }) },
      handler(lab, (work, message) =>
        Effect.gen(function* () {
          if (message.id === "acked") message.ack()
          else yield* Transaction.within(message, work.value)
          const error = yield* Effect.flip(Transaction.within(message, work.value))
          by[message.id] = error._tag === "AlreadySettled" ? error.by : error
          if (message.id === "twice") yield* work.commit
        })
      )
    )
    yield* lab.untilEvents("Succeeded", 2)
    yield* lab.untilEmpty
    Check.equal("why", by, { acked: "settled", twice: "enlisted" })
  }),
  Case.inGroup("transactions")(
    "a lease that is lost before within makes it fail",
    function* (lab) {
      const { duration } = lab.capabilities.lease!
      yield* lab.publish("a")
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, within: duration + lab.recovery })
      const stale = yield* port.next
      port.credit(0)
      const other = yield* lab.another
      const elsewhere = yield* Port.open(other.broker, { queue: lab.queue, credit: 1, keep: true })
      const fresh = yield* elsewhere.next
      const work = yield* begin(lab)
      const error = yield* Effect.flip(port.ackWithin(work.value, stale))
      Check.equal("why", error.reason, "LeaseLost")
      yield* work.rollback
      const unsettled = yield* elsewhere.ackWithin((yield* begin(lab)).value, fresh)
      Check.equal("the other's ack", unsettled, [])
    },
    Needs.all(Needs.transactions, Needs.lease, Needs.lacks("inbox"))
  ),
  Case.inGroup("transactions")(
    "a lease that ends in a transaction gives the message to another process, or to the transaction, not to both",
    function* (lab) {
      const { duration } = lab.capabilities.lease!
      yield* lab.publish("a")
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1 })
      const delivery = yield* port.next
      const other = yield* lab.another
      const elsewhere = yield* Port.open(other.broker, { queue: lab.queue })
      const work = yield* begin(lab)
      yield* port.ackWithin(work.value, delivery)
      yield* work.write("a")
      port.credit(0)
      elsewhere.credit(1)
      yield* Effect.sleep(1.5 * duration)
      const isCommitted = (yield* Effect.exit(work.commit))._tag === "Success"
      if (!isCommitted) yield* work.rollback
      yield* lab.quiet()
      Check.equal("rows", (yield* rowsOf(lab)).length, isCommitted ? 1 : 0)
      Check.equal("deliveries to the other", elsewhere.waiting(), isCommitted ? 0 : 1)
    },
    Needs.all(Needs.transactions, Needs.lease, Needs.lacks("inbox"))
  ),
  Case.inGroup("transactions")(
    "a connection that breaks in a transaction leaves the message in the queue, or the transaction is committed",
    function* (lab) {
      yield* lab.send("a")
      yield* lab.start(
        { retry: RetryPolicy.make({ maxRetries: 10 }) },
        handler(lab, (work, message) =>
          Effect.gen(function* () {
            yield* all(work, message)
            if (message.attempts === 1 && lab.runs.length === 1) yield* lab.harness.cutConnections!
            yield* work.commit
          })
        )
      )
      yield* lab.untilRuns(1)
      yield* lab.untilEmpty
      yield* lab.quiet()
      yield* lab.untilEmpty
      Check.equal("rows", yield* rowsOf(lab), ["a"])
      Check.equal("messages sent", (yield* Port.oldest(lab.broker, sentTo(lab), 2)).length, 1)
    },
    Needs.all(Needs.transactions, Needs.cutConnections)
  ),
  Case.inGroup("transactions")(
    "a broker without transactions refuses within with a remedy, and the message is retried",
    function* (lab) {
      yield* lab.send("a")
      const errors: Array<unknown> = []
      yield* lab.start({}, (message) => {
        if (message.attempts > 1) return Effect.void
        return Effect.tapError(Transaction.within(message, {}), (error) => Effect.sync(() => errors.push(error)))
      })
      yield* lab.untilRuns(2)
      yield* lab.untilEmpty
      const producer = yield* lab.producer()
      try {
        producer.within({})
      } catch (error) {
        errors.push(error)
      }
      const told = errors.map((error) => [
        Reflect.get(Object(error), "reason"),
        String(error).includes("has no transactions")
      ])
      Check.equal("errors", told, [
        ["Unsupported", true],
        ["Unsupported", true]
      ])
    },
    Needs.lacks("transactions")
  )
]
