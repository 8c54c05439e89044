/** A function on Lambda, with its event source mapping, on the simulated SQS. */
import { SqsLambda } from "@requeue/adapter-sqs/lambda"
import { Backoff, Failure } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { tagged } from "../world.ts"
import { bodiesOf, failed, json, onLambda } from "./Mapping.ts"

describe("what is done", () => {
  test("is deleted by the mapping; a function that is warm asks nothing of SQS", () =>
    onLambda(({ apply, context, event, lambda, left, network, put, round }) =>
      Effect.gen(function* () {
        const seen = new Set<number>()
        const invoke = yield* lambda<number>({}, (message) => void seen.add(message.body))
        yield* put(...json(1, 2, 3))
        yield* round(invoke)
        yield* put(...json(4, 5))
        const [before, received] = [network.calls(), yield* event()]
        const response = yield* invoke(received, context())
        assert.deepStrictEqual(network.calls(), before)
        assert.deepStrictEqual(response, { batchItemFailures: [] })
        yield* apply(received, response)
        assert.deepStrictEqual(seen, new Set([1, 2, 3, 4, 5]))
        assert.deepStrictEqual(left(), [0, 0, 0])
      })
    ))

  test("is not run again where the mapping did not receive the response", () =>
    onLambda(({ context, event, lambda, put }) =>
      Effect.gen(function* () {
        let runs = 0
        const invoke = yield* lambda({}, () => void runs++)
        yield* put(...json(1))
        const received = yield* event()
        for (const _ of [1, 2]) assert.deepStrictEqual(failed(yield* invoke(received, context())), [])
        assert.strictEqual(runs, 1)
      })
    ))

  test("an event without messages", () =>
    onLambda(({ context, lambda }) =>
      Effect.gen(function* () {
        const invoke = yield* lambda({}, () => {})
        assert.deepStrictEqual(yield* invoke({ Records: [] }, context()), { batchItemFailures: [] })
      })
    ))

  test("a handler may go on after its last message", () =>
    onLambda(({ batchLambda, put, round }) =>
      Effect.gen(function* () {
        let ended = false
        const invoke = yield* batchLambda({}, (batch) => {
          batch.ackAll()
          return Effect.delay(
            Effect.sync(() => (ended = true)),
            100
          )
        })
        yield* put(...json(1, 2))
        yield* round(invoke)
        assert.isTrue(ended)
      })
    ))
})

describe("what has failed", () => {
  test("comes again after its delay and not before, with its attempts counted", () =>
    onLambda(({ apply, come, context, event, lambda, now, put }) =>
      Effect.gen(function* () {
        const attempts: Array<number> = []
        const retry = { backoff: Backoff.constant("2 seconds") }
        const invoke = yield* lambda({ retry }, (message) => {
          attempts.push(message.attempts)
          return message.body === "bad" && message.attempts === 1 ? Effect.fail(new Error("not yet")) : Effect.void
        })
        yield* put(...json("good", "bad"))
        const received = yield* event()
        const begun = now()
        const response = yield* invoke(received, context())
        assert.deepStrictEqual(bodiesOf(received, response), ["bad"])
        yield* apply(received, response)
        const again = yield* come
        assert.isAtLeast(now() - begun, 2000)
        assert.isAtMost(now() - begun, 3000)
        assert.deepStrictEqual(failed(yield* invoke(again, context())), [])
        assert.deepStrictEqual(attempts, [1, 1, 2])
      })
    ))

  test("is a dead letter with all that is known of it when its retries are used up, and done here", () =>
    onLambda(({ apply, come, context, deadLetters, lambda, left, put, queue, round }) =>
      Effect.gen(function* () {
        const invoke = yield* lambda({ retry: { maxRetries: 1 } }, () => Effect.fail(new TypeError("broken")))
        yield* put(...json(1))
        yield* round(invoke)
        const again = yield* come
        yield* apply(again, yield* invoke(again, context()))
        assert.deepStrictEqual(left(), [0, 0, 0])
        const [letter] = deadLetters()
        assert.deepInclude(letter!.deadLetter, { queue, attempts: 2, reason: "retries-exhausted" })
        assert.deepInclude(letter!.deadLetter!.error, { name: "TypeError", message: "broken" })
      })
    ))

  test("is judged one by one: permanent, undecodable, dropped, asked for", () =>
    onLambda(({ apply, context, deadLetters, event, lambda, left, put }) =>
      Effect.gen(function* () {
        const { events, onEvent } = tagged()
        const invoke = yield* lambda<string>({ retry: { maxRetries: 3 }, concurrency: 5, onEvent }, (message) => {
          if (message.body === "permanent") return Effect.fail(new Failure.PermanentError({ message: "never" }))
          if (message.body === "drop") return Effect.fail(new Failure.DropError({ message: "unwanted" }))
          if (message.body === "ask") message.retry({ delay: "1 hour" })
          return Effect.void
        })
        yield* put(...json("good", "permanent", "drop", "ask"), "{ no json")
        const received = yield* event()
        const response = yield* invoke(received, context())
        assert.deepStrictEqual(bodiesOf(received, response), ["ask"])
        yield* apply(received, response)
        assert.deepStrictEqual(left(), [0, 1, 0])
        const reasons = deadLetters().map(({ deadLetter }) => deadLetter!.reason)
        assert.deepStrictEqual(reasons.toSorted(), ["permanent", "undecodable"])
        const ends = events.map(({ _tag }) => _tag).filter((tag) => tag !== "Received" && tag !== "AttemptFailed")
        const expected = ["DeadLettered", "DeadLettered", "Dropped", "RetryScheduled", "Succeeded"]
        assert.deepStrictEqual(ends.toSorted(), expected)
      })
    ))

  test("is dead-lettered when it is too old, or has come too often without a verdict", () =>
    onLambda(({ apply, ask, come, context, deadLetters, lambda, put, queue, round }) =>
      Effect.gen(function* () {
        const none = yield* lambda({ retry: { maxAge: 0, backoff: Backoff.constant("1 second") } }, () =>
          Effect.fail(new Error("late"))
        )
        yield* put(...json(1))
        yield* round(none)
        yield* put(...json(2))
        // Three receives that no function answered.
        for (let count = 0; count < 3; count++) {
          const [record] = (yield* come).Records
          const Entries = [{ Id: "0", ReceiptHandle: record!.receiptHandle, VisibilityTimeout: 0 }]
          yield* ask("ChangeMessageVisibilityBatch", queue, { Entries })
        }
        let runs = 0
        const counting = yield* lambda({ retry: { maxRetries: 2, maxDeliveries: 3 } }, () => void runs++)
        const last = yield* come
        yield* apply(last, yield* counting(last, context()))
        assert.strictEqual(runs, 0)
        const reasons = deadLetters().map(({ deadLetter }) => deadLetter!.reason)
        assert.deepStrictEqual(reasons, ["too-old", "too-many-deliveries"])
      })
    ))

  test("and waits for longer than a visibility timeout can last is a copy, and done here", () =>
    onLambda(({ lambda, left, put, round }) =>
      Effect.gen(function* () {
        const invoke = yield* lambda({}, (message) => message.retry({ delay: "13 hours" }))
        yield* put(...json(1))
        yield* round(invoke)
        assert.deepStrictEqual(left(), [0, 0, 1])
      })
    ))
})

describe("batches", () => {
  test("have all messages of the event, or as many as they may", () =>
    onLambda(({ batchLambda, put, round }) =>
      Effect.gen(function* () {
        const sizes: Array<number> = []
        for (const options of [{}, { maxBatchSize: 3 }]) {
          const invoke = yield* batchLambda(options, (batch) => void sizes.push(batch.messages.length))
          yield* put(...json(1, 2, 3, 4, 5, 6, 7))
          yield* round(invoke)
        }
        assert.deepStrictEqual(sizes, [7, 3, 3, 1])
      })
    ))

  test("answer for each message: the first call decides, the outcome for the rest", () =>
    onLambda(({ batchLambda, context, event, put }) =>
      Effect.gen(function* () {
        const invoke = yield* batchLambda<string>({}, ({ messages }) => {
          messages.find(({ body }) => body === "acked")!.ack()
          return Effect.fail(new Error("in the middle"))
        })
        yield* put(...json("acked", "left", "other"))
        const received = yield* event()
        const response = yield* invoke(received, context())
        assert.deepStrictEqual(bodiesOf(received, response), ["left", "other"])
      })
    ))
})

test("without ReportBatchItemFailures: what is done is deleted here, and the invocation fails", () =>
  onLambda(({ context, event, lambda, left, put, queue }) =>
    Effect.gen(function* () {
      const options = { reportBatchItemFailures: false, retry: { backoff: Backoff.constant("1 hour") } }
      const invoke = yield* lambda(options, (message) =>
        message.body === "bad" ? Effect.fail(new Error("no")) : Effect.void
      )
      yield* put(...json("good", "bad", "better"))
      const received = yield* event()
      const bad = received.Records.find(({ body }) => body === '"bad"')!
      const error = yield* Effect.flip(invoke(received, context()))
      assert.deepInclude(error, { _tag: "MessagesNotDone", queue, messageIds: [bad.messageId] })
      assert.deepStrictEqual(left(), [0, 1, 0])
      yield* put(...json("good"))
      assert.deepStrictEqual(yield* invoke(yield* event(), context()), { batchItemFailures: [] })
    })
  ))

test("an Effect handler has the services of its program", () =>
  onLambda(({ connection, context, elsewhere, event, put, queue }) =>
    Effect.gen(function* () {
      class Sink extends Context.Service<Sink, { readonly put: (body: unknown) => void }>()("test/Sink") {}
      const seen: Array<unknown> = []
      yield* put(...json("hello"))
      const invoke = yield* Effect.provideService(
        elsewhere(
          SqsLambda.make(queue, { sqs: connection }, (message) => Effect.map(Sink, (sink) => sink.put(message.body)))
        ),
        Sink,
        { put: (body) => void seen.push(body) }
      )
      assert.deepStrictEqual(yield* invoke(yield* event(), context()), { batchItemFailures: [] })
      assert.deepStrictEqual(seen, ["hello"])
    })
  ))
