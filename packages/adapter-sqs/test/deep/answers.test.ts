/** Settlements whose answers are lost, and those that SQS never took: what is told of them, and what becomes of the message. */
import { Books } from "@requeue/conformance"
import { BrokerError, Failure, Producer } from "@requeue/core"
import type { Fault, StrictSqs } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import { consume, drain, ids, idOf, on, publishAll, queueName, until, untilEmpty, type Run } from "../real/world.ts"

// All tests of this file run at once, each behind a proxy of its own.
const { another, behind } = await strict()

/** Milliseconds: what comes again meanwhile was given back. */
const longLease = 600_000

test.concurrent("an acknowledgement whose answers are lost, more often than the SDK asks: it is told as what it is", async () => {
  await using own = await another()
  const queue = queueName("answers")
  const [runs, events]: [Array<Run>, Array<string>] = [[], []]
  const count = (tag: string) => events.filter((each) => each === tag).length
  await on({ url: own.url, visibilityTimeout: longLease }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(10))
      const lost = own.lose({ action: "DeleteMessageBatch", times: 5 }, "reset")
      yield* consume(queue, runs, { concurrency: 10, onEvent: (event) => void events.push(event._tag) })
      yield* until("ten ends", () => count("Succeeded") === 10)
      assert.strictEqual(lost.left(), 0)
      yield* untilEmpty(behind, queue)
    })
  )
  assert.deepStrictEqual([runs.length, count("SettleFailed")], [10, 0])
})

test.concurrent("an acknowledgement that SQS never took: the message comes again, and no handler runs again", async () => {
  await using own = await another()
  const queue = queueName("lost")
  const [runs, events]: [Array<Run>, Array<string>] = [[], []]
  await on({ url: own.url, visibilityTimeout: longLease }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(20))
      const lost = own.fail({ action: "DeleteMessageBatch", times: 48 }, "InternalFailure")
      yield* consume(queue, runs, { concurrency: 20, onEvent: (event) => void events.push(event._tag) })
      yield* until("failed deletes", () => lost.left() === 0)
      yield* untilEmpty(behind, queue)
    })
  )
  assert.strictEqual(runs.length, 20)
  assert.isAbove(events.filter((tag) => tag === "SettleFailed").length, 0)
})

/** Milliseconds after which the adapter asks again, where no answer comes. */
const requestTimeout = 1000

/** What happens to the answer of a batch that SQS has stored. */
type Harm = (own: StrictSqs) => void

const lostThen =
  (error: Parameters<StrictSqs["fail"]>[1], how: "reset" | "silence"): Harm =>
  (own) => {
    own.lose({ action: "SendMessageBatch", times: 1 }, how)
    own.fail({ action: "SendMessageBatch", times: 50 }, error)
  }

const rewritten =
  (rewrite: (reply: string) => string): Harm =>
  (own) =>
    void own.rewrite({ action: "SendMessageBatch", times: 50 }, rewrite)

/** SQS stores the batch at first, and refuses its entries when the SDK asks again. */
const thenEntries =
  (error: Parameters<StrictSqs["failEntries"]>[2]): Harm =>
  (own) => {
    own.lose({ action: "SendMessageBatch", times: 1 }, "reset")
    own.failEntries({ action: "SendMessageBatch", times: 50 }, 10, error)
  }

const harms: ReadonlyArray<readonly [string, Harm]> = [
  ["lost, and whose repetitions are answered with RequestThrottled", lostThen("RequestThrottled", "silence")],
  ["lost, and whose repetitions are answered with AccessDenied", lostThen("AccessDenied", "reset")],
  ["lost, and whose repetitions are answered with InternalFailure", lostThen("InternalFailure", "reset")],
  ["lost, and whose entries are refused for good by its repetition", thenEntries("KmsDisabled")],
  ["lost, and whose entries are throttled by all repetitions", thenEntries("RequestThrottled")],
  ["a login page", rewritten(() => "<html>the queue does not exist</html>")],
  ["a part of it", rewritten((reply) => reply.slice(0, -15))],
  ["nothing", rewritten(() => "null")],
  ["lists of nothing", rewritten(() => '{"Successful":[null],"Failed":[null]}')],
  ["ids of nobody", rewritten(() => '{"Successful":[{"Id":"9"}],"Failed":[{"Id":"x"},{"Id":7}]}')]
]

test.concurrent.for(["", ".fifo"].flatMap((kind) => harms.map(([how, harm]) => [how, kind, harm] as const)))(
  "a batch that is stored, and whose answer is %s: what became of it is unknown, and it is not sent again%s",
  async ([, kind, harm]) => {
    await using own = await another()
    const queue = `${queueName("doubt")}${kind}`
    const told = await on({ url: own.url, requestTimeout }, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ids(1))
        harm(own)
        const producer = yield* Producer.make(queue)
        return yield* Effect.flip(producer.sendBatch(["x", "y"].map((body) => ({ body }))))
      })
    )
    const entries = told instanceof BrokerError.BrokerError ? told.entries : undefined
    assert.deepStrictEqual(
      entries?.map(({ status }) => status),
      ["unknown", "unknown"]
    )
    assert.lengthOf(await drain(behind, queue), 3)
  }
)

test.concurrent("a message that may be stored, when others of its batch find the queue missing: what became of it stays unknown", async () => {
  await using own = await another()
  const queue = queueName("gone")
  const told = await on({ url: own.url, requestTimeout }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(1))
      // The first call, of ten, finds no queue; the second one is lost, of one that goes when there is no other.
      const lost = own.lose({ action: "SendMessageBatch", times: 1, every: 2 }, "reset")
      own.fail({ action: "SendMessageBatch", times: 1 }, "QueueDoesNotExist")
      own.fail({ action: "SendMessageBatch", times: 50 }, "AccessDenied")
      const producer = yield* Producer.make(queue)
      const error = yield* Effect.flip(producer.sendBatch(ids(11).map((body) => ({ body }))))
      assert.strictEqual(lost.left(), 0)
      return error
    })
  )
  const entries = told instanceof BrokerError.BrokerError ? told.entries : undefined
  assert.strictEqual(entries?.at(-1)?.status, "unknown")
})

test.concurrent("an entry at which SQS fails, and which it refuses when it is sent again: what became of it is unknown", async () => {
  await using own = await another()
  const queue = queueName("entry")
  const told = await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(1))
      own.failEntries({ action: "SendMessageBatch", times: 1 }, 1, "InternalFailure")
      own.fail({ action: "SendMessageBatch", times: 50 }, "AccessDenied")
      const producer = yield* Producer.make(queue)
      return yield* Effect.flip(producer.sendBatch(["x", "y"].map((body) => ({ body }))))
    })
  )
  const entries = told instanceof BrokerError.BrokerError ? told.entries : undefined
  assert.deepStrictEqual(
    entries?.map(({ status }) => status),
    ["unknown", "sent"]
  )
})

const permanent = Effect.fail(new Failure.PermanentError({ message: "never" }))

test.concurrent("a dead letter that is stored, and whose answers are lost more often than the SDK asks: it is told as failed, and sent again; no handler runs again", async () => {
  await using own = await another()
  const queue = queueName("stored")
  const runs: Array<Run> = []
  const books = Books.make(ids(1))
  await on({ url: own.url, visibilityTimeout: longLease }, (broker) =>
    Effect.gen(function* () {
      const lost = own.lose({ action: "SendMessageBatch", queue: `${queue}-dlq`, times: 3 }, "reset")
      yield* consume(queue, runs, { onEvent: books.onEvent }, () => permanent)
      yield* publishAll(broker, queue, books.published)
      yield* Books.untilEnded(books)
      yield* untilEmpty(behind, queue)
      assert.strictEqual(lost.left(), 0)
    })
  )
  const found = (await drain(behind, `${queue}.dlq`)).map(idOf)
  const failures = books.events.filter((event) => event._tag === "SettleFailed")
  assert.deepStrictEqual([runs.length, failures.length, found.length], [1, 1, 4])
  assert.deepInclude(failures[0], { settlement: "DeadLetter" })
  const error = failures[0]?.error
  assert.strictEqual(error instanceof BrokerError.BrokerError && error.reason, "ConnectionLost")
  Books.balance(books, { queued: [], deadLetters: found })
})

describe.concurrent("a dead letter whose original SQS is asked to delete twelve times", () => {
  const action = "DeleteMessageBatch"
  test.each<[name: string, visibilityTimeout: number, ask: (proxy: StrictSqs) => Fault]>([
    ["and deletes, without an answer", longLease, ({ lose }) => lose({ action, times: 12 }, "reset")],
    ["and does not delete", 10_000, ({ fail }) => fail({ action, times: 12 }, "InternalFailure")]
  ])("%s: it is told once, and no handler runs again", async (_, visibilityTimeout, ask) => {
    await using own = await another()
    const queue = queueName("original")
    const runs: Array<Run> = []
    const books = Books.make(ids(1))
    await on({ url: own.url, visibilityTimeout }, (broker) =>
      Effect.gen(function* () {
        const fault = ask(own)
        yield* consume(queue, runs, { onEvent: books.onEvent }, () => permanent)
        yield* publishAll(broker, queue, books.published)
        yield* Books.untilEnded(books)
        yield* untilEmpty(behind, queue)
        assert.strictEqual(fault.left(), 0)
      })
    )
    const found = (await drain(behind, `${queue}.dlq`)).map(idOf)
    assert.deepStrictEqual([runs.length, found.length], [1, 1])
    assert.deepStrictEqual(
      books.events.map(({ _tag }) => _tag),
      ["Received", "AttemptFailed", "DeadLettered"]
    )
    Books.balance(books, { queued: [], deadLetters: found })
  })
})
