/** What is wrong is refused with a typed error that names the field and the value, before anything is sent. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { BrokerError, ConfigurationError, connect, EncodeError, InvalidDelay, queue } from "@requeue/core/promise"
import type { ConsumeOptions } from "@requeue/core/promise"
import { Codec, type Producer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { MemoryBroker } from "../src/index.ts"
import { bytes } from "./harness.ts"
import { open, turns } from "./virtualBroker.ts"

const rejection = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => assert.fail("it was accepted"),
    (error: unknown) => error as Error
  )

describe("send", () => {
  const day = "a delay is a duration from 0 to 1d (a number counts milliseconds)"
  const howTo = 'Write a number of milliseconds, or text such as "10 seconds" or "5 minutes"'
  it.each<readonly [string, Producer.SendOptions, string]>([
    ["negative", { delay: -1 }, `send.delay: ${day}, got -1`],
    ["no number", { delay: Number.NaN }, `send.delay: ${day}, got NaN`],
    ["unlimited", { delay: Number.POSITIVE_INFINITY }, `send.delay: ${day}, got Infinity`],
    ["over a day", { delay: "25 hours" }, `send.delay: ${day}, got "25 hours"`],
    ["no duration", { delay: "soon" as "1 second" }, `send.delay: ${day}, got "soon". ${howTo}`],
    ["misspelt", { delay: { secs: 5 } as {} }, `send.delay: ${day}, got {"secs":5}. ${howTo}`]
  ])("a delay that is %s", async (_, options, message) => {
    await using broker = await open()
    const refused = await rejection(broker.requeue.send("q", 1, options))
    assert.instanceOf(refused, InvalidDelay)
    assert.strictEqual(refused.message, message)
    // One wrong entry keeps the whole batch from being sent.
    const entries: ReadonlyArray<Producer.BatchEntry<number>> = [{ body: 1 }, { body: 2, ...options }]
    const ofEntry = await rejection(broker.requeue.sendBatch("q", entries))
    assert.strictEqual(ofEntry.message, message.replace("send.delay", "entries[1].delay"))
    const ofBatch = await rejection(broker.requeue.sendBatch("q", [{ body: 1 }], options))
    assert.strictEqual(ofBatch.message, message.replace("send.delay", "sendBatch.delay"))
    assert.throws(() => queue("q", { delay: options.delay }), RangeError, "delay")
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 0, delayed: 0, isMissing: true })
  })

  it.each<readonly [string, unknown, Producer.SendOptions, string]>([
    [
      "a reserved header",
      1,
      { headers: { requeue: "x" } },
      `headers: "requeue" is reserved for Requeue's own metadata. Use another header name`
    ],
    [
      "a header that is no text",
      1,
      { headers: { n: 5 as unknown as string } },
      'headers: "n" must be text, got number. Convert the value to text'
    ],
    ["an empty id", 1, { id: "" }, "id: must have 1 to 200 characters, got 0"],
    ["an endless id", 1, { id: "x".repeat(201) }, "id: must have 1 to 200 characters, got 201"],
    [
      "a body without a JSON form",
      undefined,
      {},
      "body: TypeError: body is undefined, which has no JSON form. Send null, or an object"
    ],
    [
      "a body that JSON refuses",
      12n,
      {},
      "body: TypeError: body is a BigInt, which JSON cannot write. Send text: String(body)"
    ]
  ])("%s", async (_, body, options, message) => {
    await using broker = await open()
    const error = await rejection(broker.requeue.send("q", body, options))
    assert.instanceOf(error, EncodeError)
    assert.include(error.message, `send to queue q: ${message}`)
    assert.deepStrictEqual(await broker.waiting("q"), [])
  })

  const cycle = () => {
    const order: Record<string, unknown> = { id: 7 }
    order["lines"] = [{ order }]
    return { order }
  }
  it.each<readonly [string, unknown, string]>([
    [
      "a BigInt",
      { order: { lines: [{ id: 1 }, { id: 7n }] } },
      "body.order.lines[1].id is a BigInt, which JSON cannot write. Send text: String(body.order.lines[1].id)"
    ],
    [
      "a cycle",
      cycle(),
      "body.order.lines[0].order is the same object as body.order, which contains it; JSON cannot write a cycle. " +
        "Leave body.order.lines[0].order out, or send its id"
    ]
  ])("a body with %s: the error names the path and how to send it", async (_, body, message) => {
    await using broker = await open()
    const error = await rejection(broker.requeue.send("q", body))
    assert.instanceOf(error, EncodeError)
    assert.strictEqual(error.message, `send to queue q: body: TypeError: ${message}`)
  })

  it("a body whose toJSON throws keeps that error", async () => {
    await using broker = await open()
    const toJSON = () => {
      throw new Error("no JSON today")
    }
    assert.include((await rejection(broker.requeue.send("q", { a: { toJSON } }))).message, "body: Error: no JSON today")
  })

  it("headers of a codec that are no plain object", async () => {
    await using broker = await open()
    const encodeMessage = (body: unknown, { native }: Codec.MessageParts): Codec.EncodedMessage => {
      const headers: any = new Map([["tenant", "acme"]])
      return { body: Codec.json.encode(body), headers, native }
    }
    const error = await rejection(broker.requeue.send(queue("q", { codec: { ...Codec.json, encodeMessage } }), 1))
    assert.instanceOf(error, EncodeError)
    assert.include(
      error.message,
      "headers: must be a plain object with text values, got a Map. Make the queue's codec return"
    )
    assert.deepStrictEqual(await broker.waiting("q"), [])
  })

  it("a body whose codec says more than an error shows", async () => {
    await using broker = await open()
    const encode = (): Uint8Array => {
      throw Object.assign(new Error("e".repeat(1_000_000)), { remedy: "r".repeat(1_000_000) })
    }
    const error = await rejection(broker.requeue.send(queue("q", { codec: { ...Codec.json, encode } }), 1))
    assert.instanceOf(error, EncodeError)
    assert.match(error.message, /^send to queue q: body: Error: e+…\. r+…$/)
    assert.isBelow(error.message.length, 4100)
  })

  it("a body over the broker's limit", async () => {
    await using requeue = await connect("memory:?maxBodySize=10")
    await requeue.send("q", "12345678")
    const error = await rejection(requeue.sendBatch("q", [{ body: "fits" }, { body: "123456789" }]))
    assert.instanceOf(error, BrokerError)
    assert.strictEqual(error.reason, "BodyTooLarge")
    assert.isFalse(error.isRetryable)
    assert.strictEqual(
      error.message,
      "memory: publish on queue q: BodyTooLarge: entries[1].body: the body has 11 bytes, the limit is 10. " +
        "Store the content elsewhere and send a reference to it, as the codec ClaimCheck does"
    )
    assert.strictEqual((await requeue.counts("q")).ready, 1)
  })

  it.each<readonly [string, Producer.BatchEntry<unknown>, string]>([
    ["a body that cannot be encoded", { body: 12n, id: "m7" }, "send to queue q: entries[2].body (id m7): TypeError: "],
    ["a body without an id", { body: 12n }, "send to queue q: entries[2].body: TypeError: "],
    [
      "a body that is too large",
      { body: "123456789", id: "m7" },
      "BodyTooLarge: entries[2].body (id m7): the body has 11"
    ],
    ["an id that is none", { body: 1, id: "" }, "send to queue q: entries[2].id: must have 1 to 200 characters"],
    ["a header", { body: 1, id: "m7", headers: { requeue: "" } }, "send to queue q: entries[2].headers (id m7): "],
    ["a delay", { body: 1, delay: -1 }, "entries[2].delay: a delay is a duration from 0 to 1d"]
  ])("%s of one among several names which", async (_, entry, message) => {
    await using requeue = await connect("memory:?maxBodySize=10")
    const error = await rejection(requeue.sendBatch("q", [{ body: 1 }, { body: 2 }, entry]))
    assert.include(error.message, message)
    assert.strictEqual((await requeue.counts("q")).ready, 0)
  })

  it("a queue without a name", async () => {
    await using broker = await open()
    assert.match(
      (await rejection(broker.requeue.send("", 1))).message,
      /^requeue\.send: queue must have 1 to 200 characters, got ""\. Check the variable that/
    )
  })
})

describe("consume", () => {
  it.each<readonly [ConsumeOptions, RegExp]>([
    [{ retry: { maxRetries: -1 } }, /maxRetries must be a whole number >= 0 or "unlimited", got -1/],
    [{ retry: { maxRetries: 1.5 } }, /maxRetries must be .*, got 1.5/],
    [{ retry: { maxAttempts: 0 } }, /maxAttempts must be a whole number >= 1 or "unlimited", got 0/],
    [{ retry: { maxRetries: 1, maxAttempts: 2 } as {} }, /give maxRetries or maxAttempts, not both, got 1 and 2/],
    [{ retry: { immediate: 11 } }, /immediate must be a whole number from 0 to 10, got 11/],
    [{ retry: { maxAge: -1 } }, /maxAge must be a duration of at least 0ms, or Infinity, got -1/],
    [{ retry: { deadLetter: "lo\ud801op" } }, /deadLetter must have no broken surrogates/],
    [
      { retry: { deadLetter: { routes: { undecodable: "lo\ud801op" } } } },
      /routes.undecodable must have no broken surrogates/
    ],
    [{ retry: { deadLetter: "" } }, /deadLetter must not be an empty queue name, got ""/],
    [{ batch: { maxBatchSize: 0 } }, /maxBatchSize must be a whole number from 1 to 100, got 0/],
    [{ batch: { maxBatchTimeout: "61 seconds" } }, /maxBatchTimeout must be .* to 1m, got "61 seconds"/],
    [{ concurrency: 0 }, /concurrency must be a whole number from 1 to 1000, got 0/],
    [{ handlerTimeout: 0 }, /handlerTimeout must be a duration from 1ms to 12h or "unlimited", got 0/],
    [{ retryDelay: "2 days" }, /retryDelay must be a duration from 0ms to 1d, got "2 days"/],
    [{ consumerBackoff: { multiplier: -5 } }, /multiplier must be a duration from 1ms to 1d, got -5/]
  ])("%o", async (options, message) => {
    await using broker = await open()
    const error = await rejection(broker.requeue.consume("q", options, () => {}))
    assert.instanceOf(error, RangeError)
    assert.match(error.message, message)
    await broker.requeue.send("q", 1)
    await turns()
    assert.deepStrictEqual(await broker.waiting("q"), ["1"])
  })

  it("a queue that is its own dead-letter queue", async () => {
    await using broker = await open()
    for (const deadLetter of ["q", { routes: { permanent: "q" } }]) {
      const error = await rejection(broker.requeue.consume("q", { retry: { deadLetter } }, () => {}))
      assert.instanceOf(error, ConfigurationError)
      assert.strictEqual(
        error.message,
        "retry.deadLetter (queue q, broker memory): the queue is its own dead-letter queue: its dead letters would be consumed " +
          "again for ever. Set deadLetter to another queue, or remove it to use q.dlq"
      )
    }
  })

  it("a wrong delay of a retry fails the handler, which may still give a right one", async () => {
    await using broker = await open({ faults: { capabilities: { retryDelay: { native: 60_000, beyond: undefined } } } })
    const errors: Array<unknown> = []
    const attempt = (call: () => void) => {
      try {
        call()
      } catch (error) {
        errors.push(error)
      }
    }
    await broker.requeue.consumeBatch("q", { batch: { maxBatchSize: 1 } }, (batch) => {
      attempt(() => batch.messages[0]!.retry({ delay: -1 }))
      attempt(() => batch.retryAll({ delay: "25 hours" }))
      attempt(() => batch.retryAll({ delay: "2 minutes" }))
      batch.retryAll({ delay: "1 minute" })
    })
    await broker.requeue.send("q", 1)
    await turns()
    assert.deepStrictEqual(errors.map(String), [
      "InvalidDelay: message.retry.delay: a delay is a duration from 0 to 1d (a number counts milliseconds), got -1",
      'InvalidDelay: batch.retryAll.delay: a delay is a duration from 0 to 1d (a number counts milliseconds), got "25 hours"',
      'InvalidDelay: batch.retryAll.delay: a delay is a duration from 0 to 1m (a number counts milliseconds), got "2 minutes"'
    ])
    assert.deepStrictEqual(await broker.later("q"), [[1, 60_000]])
  })

  it("a body that cannot be decoded goes to the dead letters as it is, and no handler sees it", async () => {
    await using broker = await open()
    const body = new Uint8Array([...bytes(`{"a":`), 0xff])
    await Effect.runPromise(broker.control.publishRaw("q", body, { tenant: "t" }))
    let runs = 0
    await broker.requeue.consume("q", {}, () => runs++)
    await turns()
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.deepStrictEqual([letter!.body, letter!.headers], [body, { tenant: "t" }])
    assert.deepStrictEqual([letter!.origin!.reason, letter!.origin!.attempts, runs], ["undecodable", 1, 0])
  })

  it("a backoff that the broker cannot keep is found at the start", async () => {
    const faults = { capabilities: { retryDelay: { native: 60_000, beyond: undefined } } }
    await using requeue = await connect(MemoryBroker.layer({ faults }))
    const error = await rejection(requeue.consume("q", { retryDelay: "1 hour" }, () => {}))
    assert.instanceOf(error, ConfigurationError)
    assert.match(error.message, /^retryDelay \(queue q, broker memory\): .* at most 1m\. Set max to 1m or less/)
  })
})
