/** The end of a function's time, and an SQS that refuses or does not answer. */
import { Backoff } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { tagged } from "../world.ts"
import { bodiesOf, failed, json, onLambda } from "./Mapping.ts"

describe("the end of the function", () => {
  test("comes before a handler does: what has begun is interrupted, all of it comes again at once", () =>
    onLambda(({ context, event, lambda, left, put }) =>
      Effect.gen(function* () {
        const [begun, ended]: [Array<unknown>, Array<unknown>] = [[], []]
        const invoke = yield* lambda({ reserve: 10_000 }, ({ body }) => {
          begun.push(body)
          return Effect.onInterrupt(Effect.never, () => Effect.sync(() => ended.push(body)))
        })
        yield* put(...json(1, 2, 3))
        const given = context(12_000)
        const response = yield* invoke(yield* event(), given)
        assert.isAbove(given.getRemainingTimeInMillis(), 0)
        assert.deepStrictEqual([failed(response).length, begun, ended], [3, [1], [1]])
        assert.deepStrictEqual(left(), [3, 0, 0])
      })
    ))

  test("comes though an answer from SQS never does", () =>
    onLambda(({ come, context, lambda, lose, put, round }) =>
      Effect.gen(function* () {
        const invoke = yield* lambda({ reserve: 5000 }, () => Effect.fail(new Error("no")))
        yield* put(...json(1))
        yield* round(invoke)
        const received = yield* come
        lose("ChangeMessageVisibilityBatch", "silence", { times: 10 })
        const given = context(7000)
        assert.deepStrictEqual(bodiesOf(received, yield* invoke(received, given)), [1])
        assert.isAbove(given.getRemainingTimeInMillis(), 0)
      })
    ))

  test.each([
    [800, undefined],
    [800, 0],
    [1400, undefined]
  ])(
    "with %d ms left, and a reserve of %s, nothing is begun or counted, and all comes again at once",
    (time, reserve) =>
      onLambda(({ context, counts, event, lambda, left, letters, put, round }) =>
        Effect.gen(function* () {
          const runs: Array<number> = []
          const invoke = yield* lambda(
            { reserve, retry: { maxRetries: 0 } },
            (message) => void runs.push(message.attempts)
          )
          yield* put(...json(1, 2))
          // Verifies the queues, which takes its time once.
          yield* invoke({ Records: [] }, context())
          for (const _ of [1, 2]) {
            const received = yield* event()
            assert.lengthOf(failed(yield* invoke(received, context(time))), received.Records.length)
            yield* Effect.sleep(100)
            assert.deepStrictEqual(left(), [2, 0, 0])
          }
          assert.deepStrictEqual(runs, [])
          while (runs.length < 2) yield* round(invoke)
          assert.deepStrictEqual(runs, [1, 1])
          assert.deepStrictEqual(counts(letters), [0, 0, 0])
        })
      )
  )

  test("is counted for what had begun, and not for what had not: a handler that never ends is given up", () =>
    onLambda(({ counts, deadLetters, lambda, letters, put, round }) =>
      Effect.gen(function* () {
        const begun: Array<number> = []
        const options = { reserve: 10_000, retry: { maxRetries: 1, maxDeliveries: 2 } }
        const invoke = yield* lambda<string>(options, (message) => {
          begun.push(message.attempts)
          return Effect.never
        })
        yield* put(...json("a", "b"))
        for (let time = 0; time < 10 && counts(letters)[0]! < 2; time++) yield* round(invoke, 11_000)
        assert.deepStrictEqual(
          begun.toSorted((a, b) => a - b),
          [1, 1, 2, 2]
        )
        const reasons = deadLetters().map(({ deadLetter }) => deadLetter!.reason)
        assert.deepStrictEqual(reasons, ["too-many-deliveries", "too-many-deliveries"])
      })
    ))
})

describe("when SQS does not play along", () => {
  test.each(["verify", "use"] as const)(
    "it gives no answer to the first call, with queues: %s: the invocation fails before its time is over, and says why",
    (queues) =>
      onLambda(
        ({ context, event, lambda, lose, put, queue }) =>
          Effect.gen(function* () {
            yield* put(...json(1))
            const received = yield* event()
            const faults = ["GetQueueUrl", "GetQueueAttributes"].map((action) =>
              lose(action, "silence", { times: 100 })
            )
            const invoke = yield* lambda({}, () => {})
            const given = context(2000)
            const error = yield* Effect.flip(invoke(received, given))
            assert.deepInclude(error, { reason: "Timeout", queue })
            assert.include(error.message, "VPC")
            assert.isAbove(given.getRemainingTimeInMillis(), 0)
            for (const { end } of faults) end()
            assert.deepStrictEqual(yield* invoke(received, context()), { batchItemFailures: [] })
          }),
        { queues }
      )
  )

  test.each(["hang", "fail"])("deletes of the function itself %s: what comes again is named, in time", (how) =>
    onLambda(({ context, event, lambda, lose, put, server }) =>
      Effect.gen(function* () {
        const invoke = yield* lambda({ reportBatchItemFailures: false }, (message) =>
          message.body === "bad" ? Effect.fail(new Error("no")) : Effect.void
        )
        yield* put(...json("good", "bad"))
        const received = yield* event()
        if (how === "hang") lose("DeleteMessageBatch", "silence", { times: 100 })
        else server.deny(["DeleteMessage"])
        const given = context(4000)
        const error = yield* Effect.flip(invoke(received, given))
        assert.deepInclude(error, { messageIds: received.Records.map(({ messageId }) => messageId) })
        assert.isAbove(given.getRemainingTimeInMillis(), 0)
      })
    )
  )

  test("records that have one receipt handle: what is not run is named", () =>
    onLambda(({ context, event, lambda, put }) =>
      Effect.gen(function* () {
        yield* put(...json(0))
        const [first] = (yield* event()).Records
        const Records = Array.from({ length: 1000 }, (_, index) => ({
          ...first!,
          messageId: `m${index}`,
          body: String(index)
        }))
        const runs: Array<number> = []
        const invoke = yield* lambda<number>({ concurrency: 10 }, ({ body }) =>
          Effect.delay(
            Effect.sync(() => runs.push(body)),
            1
          )
        )
        const named = failed(yield* invoke({ Records }, context()))
        assert.strictEqual(new Set([...runs.map((body) => `m${body}`), ...named]).size, Records.length)
      })
    ))

  test("entries of the delays fail: they are asked for again", () =>
    onLambda(({ apply, context, event, failEntries, lambda, left, put }) =>
      Effect.gen(function* () {
        const invoke = yield* lambda({ concurrency: 10 }, (message) => message.retry({ delay: "1 hour" }))
        yield* put(...json(1, 2, 3, 4, 5))
        const received = yield* event()
        failEntries("ChangeMessageVisibilityBatch", "InternalFailure", [0, 1, 2], { times: 2 })
        const response = yield* invoke(received, context())
        assert.deepStrictEqual(bodiesOf(received, response), [1, 2, 3, 4, 5])
        yield* apply(received, response)
        assert.deepStrictEqual(left(), [0, 5, 0])
      })
    ))

  test("no dead letter can be sent: the message comes again when its visibility ends, and not at once", () =>
    onLambda(({ context, counts, event, lambda, left, letters, put, server }) =>
      Effect.gen(function* () {
        const { count, onEvent } = tagged()
        const invoke = yield* lambda({ retry: { maxRetries: 0 }, onEvent }, () => Effect.fail(new Error("no")))
        yield* put(...json(1))
        const received = yield* event()
        server.deny(["SendMessage"])
        assert.deepStrictEqual(bodiesOf(received, yield* invoke(received, context())), [1])
        assert.deepStrictEqual(
          [left(), counts(letters)],
          [
            [0, 1, 0],
            [0, 0, 0]
          ]
        )
        assert.isAbove(count("SettleFailed"), 0)
      })
    ))

  test("a dead letter is too large for its queue: it is cut short until it fits", () =>
    onLambda(({ ask, deadLetters, lambda, left, letters, put, queue, round }) =>
      Effect.gen(function* () {
        yield* ask("SetQueueAttributes", letters, { Attributes: { MaximumMessageSize: "1024" } })
        const invoke = yield* lambda({ retry: { maxRetries: 0 } }, () => Effect.fail(new Error("x".repeat(256))))
        yield* put(...json("m".repeat(700)))
        yield* round(invoke)
        assert.deepStrictEqual(left(), [0, 0, 0])
        const [letter] = deadLetters()
        assert.deepStrictEqual([letter?.truncation, letter?.deadLetter?.queue], ["error-text", queue])
      })
    ))

  test("a queue of the policy is missing, or ends its leases before the function does", () =>
    onLambda(
      ({ context, event, lambda, put }) =>
        Effect.gen(function* () {
          let runs = 0
          const run = () => void runs++
          yield* put(...json(1))
          const received = yield* event()
          const lost = yield* lambda({ retry: { deadLetter: "nowhere" } }, run)
          const missing = yield* Effect.flip(lost(received, context()))
          assert.deepInclude(missing, { reason: "QueueMissing", queue: "nowhere" })
          const slow = yield* lambda({}, run)
          const unfit = yield* Effect.flip(slow(received, context(31_000)))
          assert.deepInclude(unfit, { reason: "QueueMismatch" })
          assert.include(unfit.message, "VisibilityTimeout")
          // Neither is remembered: the next invocation looks again.
          assert.deepStrictEqual(yield* slow(received, context()), { batchItemFailures: [] })
          assert.strictEqual(runs, 1)
        }),
      { queues: "verify" }
    ))

  test("the books balance: 200 messages, handlers that fail, and an SQS that fails now and then", () =>
    onLambda(({ counts, fail, failEntries, lambda, left, letters, put, round }) =>
      Effect.gen(function* () {
        const [acked, dead] = [new Set<number>(), new Set<string>()]
        const backoff = Backoff.exponential("1 second", { max: "2 seconds" })
        const options = { concurrency: 5, retry: { maxRetries: 2, backoff } }
        const { events, onEvent } = tagged()
        const invoke = yield* lambda<number>({ ...options, onEvent }, ({ attempts, body }) =>
          Effect.gen(function* () {
            yield* Effect.sleep(1 + (body % 7))
            if ((body * 31 + attempts * 17) % 3 === 0 || body % 20 === 0) return yield* Effect.fail(new Error("no"))
            acked.add(body)
          })
        )
        const names = Array.from({ length: 200 }, (_, index) => index)
        yield* put(...json(...names))
        failEntries("ChangeMessageVisibilityBatch", "InternalFailure", [0, 1], { every: 3, times: 10 })
        failEntries("SendMessageBatch", "InternalFailure", [0], { every: 2, times: 5 })
        fail("ChangeMessageVisibilityBatch", "RequestThrottled", { every: 5, times: 5 })
        while (acked.size + dead.size < names.length) {
          if ((yield* round(invoke)) === 0) yield* Effect.sleep(100)
          for (const event of events) if (event._tag === "DeadLettered") dead.add(event.id)
        }
        assert.strictEqual(acked.size + dead.size, names.length)
        assert.deepStrictEqual(left(), [0, 0, 0])
        assert.strictEqual(counts(letters)[0], dead.size)
        assert.isAtLeast(dead.size, 10)
      })
    ))
})
