/** Consuming through the promise face: policies, and what a handler throws. */
import { runInNewContext } from "node:vm"
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { constant, type Event, HandlerTimeout, linear, PermanentError, RetryLaterError } from "@requeue/core/promise"
import { ConsumerBackoff, RetryPolicy } from "@requeue/core"
import { open, turns } from "./virtualBroker.ts"

describe("policies", () => {
  it.each([
    ["a plain object", { maxRetries: 2, backoff: linear("10 seconds") }],
    ["a built policy", RetryPolicy.make({ maxRetries: 2, backoff: linear("10 seconds") })]
  ])("retries by %s, then dead-letters", async (_, retry) => {
    await using broker = await open()
    const runs: Array<readonly [number, number]> = []
    await broker.requeue.consume("q", { retry }, (message) => {
      runs.push([broker.now(), message.attempts])
      throw new Error("no")
    })
    await broker.requeue.send("q", "x")
    await broker.advance("1 hour")
    assert.deepStrictEqual(runs, [
      [0, 1],
      [10_000, 2],
      [30_000, 3]
    ])
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.strictEqual(letter?.origin?.reason, "retries-exhausted")
  })

  it("the batch policy may be a plain object, too", async () => {
    await using broker = await open()
    const sizes: Array<number> = []
    await broker.requeue.consumeBatch("q", { batch: { maxBatchSize: 2, maxBatchTimeout: "1 second" } }, (batch) =>
      sizes.push(batch.messages.length)
    )
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }, { body: 3 }])
    await turns()
    assert.deepStrictEqual(sizes, [2])
    await broker.advance("1 second")
    assert.deepStrictEqual(sizes, [2, 1])
  })

  it("consumer backoff may be true, a plain object of any form, or built", async () => {
    for (const [consumerBackoff, failures, pause] of [
      [true, 10, 2000],
      [{ multiplier: "5 seconds" }, 10, 10_000],
      [{ form: "consecutive", failures: 2 }, 2, 2000],
      [{ form: "nsq", multiplier: "5 seconds" }, 1, 10_000],
      [{ form: "ratio", minAttempts: 3, window: { attempts: 10 } }, 3, 2000],
      [ConsumerBackoff.ratio({ minAttempts: 4 }), 4, 2000]
    ] as const) {
      await using broker = await open()
      const runs: Array<number> = []
      await broker.requeue.consume("q", { consumerBackoff, retry: { maxRetries: "unlimited" } }, () => {
        if (runs.push(broker.now()) <= failures) throw new Error("down")
      })
      await broker.requeue.send("q", 1)
      await broker.advance("1 minute")
      assert.deepStrictEqual(
        runs,
        [...Array.from({ length: failures }, () => 0), pause],
        JSON.stringify(consumerBackoff)
      )
    }
  })
})

describe("failures", () => {
  it("what a handler throws is told to the audit hook, whatever it is", async () => {
    const thrown: ReadonlyArray<readonly [unknown, string, string]> = [
      [new TypeError("bad"), "TypeError", "bad"],
      ["bad", "NonError(string)", "bad"],
      [null, "NonError(null)", "null"],
      [undefined, "NonError(undefined)", "undefined"],
      [Object.create(null), "NonError(object)", "{}"]
    ]
    const handlers = (value: unknown) => [
      () => {
        throw value
      },
      async () => {
        throw value
      }
    ]
    for (const [value, name, message] of thrown) {
      for (const handler of handlers(value)) {
        await using broker = await open()
        const events: Array<Event> = []
        const onEvent = (event: Event) => void events.push(event)
        await broker.requeue.consume("q", { retry: { maxRetries: 0 }, onEvent }, handler)
        await broker.requeue.send("q", 1)
        await turns()
        assert.deepStrictEqual(
          events.map(({ _tag }) => _tag),
          ["Received", "AttemptFailed", "DeadLettered"]
        )
        const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
        const { stack: _, ...error } = letter!.origin!.error
        assert.deepStrictEqual(error, { name, message })
      }
    }
  })

  it("an error's retryAfter is the delay, in seconds or as a date", async () => {
    const errors = [
      new RetryLaterError({ message: "busy", retryAfter: 7 }),
      new RetryLaterError({ message: "busy", retryAfter: new Date(7000) }),
      Object.assign(new Error("busy"), { retryAfter: "Thu, 01 Jan 1970 00:00:07 GMT" })
    ]
    for (const error of errors) {
      await using broker = await open()
      const runs: Array<number> = []
      await broker.requeue.consume("q", { retry: { backoff: constant("1 minute") } }, async () => {
        if (runs.push(broker.now()) === 1) throw error
      })
      await broker.requeue.send("q", 1)
      await broker.advance("1 hour")
      assert.deepStrictEqual(runs, [0, 7000])
    }
  })

  it("a permanent error is dead-lettered at once, with a reason and a cause", async () => {
    await using broker = await open()
    await broker.requeue.consume("q", {}, () => {
      throw new Error("outer", { cause: new PermanentError({ message: "gone" }) })
    })
    await broker.requeue.send("q", 1)
    await turns()
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.strictEqual(letter?.origin?.reason, "permanent")
    assert.strictEqual(letter?.origin?.attempts, 1)
    assert.strictEqual(letter?.origin?.error.message, "outer, caused by PermanentError: gone")
    assert.include(letter?.origin?.error.stack, "\ncaused by: PermanentError: gone\n    at ")
  })

  it.each<readonly [string, () => unknown]>([
    ["returns", () => new Error("declined")],
    ["resolves with", async () => new Error("declined")],
    ["returns, of another realm,", () => runInNewContext('new Error("declined")')]
  ])("an Error that a handler %s counts as thrown", async (_, handler) => {
    await using broker = await open()
    await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, handler)
    await broker.requeue.send("q", 1)
    await turns()
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.strictEqual(letter?.origin?.error.message, "declined")
    assert.strictEqual(letter?.origin?.reason, "retries-exhausted")
  })

  it("a PermanentError that a handler returns or resolves with is dead-lettered at once", async () => {
    await using broker = await open()
    await broker.requeue.consume("q", {}, ({ body }) => {
      const error = new PermanentError("gone")
      return body === 1 ? error : Promise.resolve(error)
    })
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await turns()
    const letters = await deadLetters(broker.requeue, "q.dlq").list()
    assert.deepStrictEqual(
      letters.map(({ origin }) => origin?.reason),
      ["permanent", "permanent"]
    )
  })

  it("a handler that takes too long is told so by its signal, and the attempt counts", async () => {
    await using broker = await open()
    const reasons: Array<unknown> = []
    const attempts: Array<number> = []
    await broker.requeue.consume("q", { handlerTimeout: "1 minute" }, (message, { signal }) => {
      if (attempts.push(message.attempts) > 1) return undefined
      signal.addEventListener("abort", () => reasons.push(signal.reason))
      return new Promise(() => {})
    })
    await broker.requeue.send("q", 1)
    await broker.advance("59 seconds")
    assert.deepStrictEqual([reasons, attempts], [[], [1]])
    await broker.advance("1 second")
    assert.deepStrictEqual(attempts, [1, 2])
    assert.instanceOf(reasons[0], HandlerTimeout)
    assert.strictEqual(
      String(reasons[0]),
      "HandlerTimeout: handlerTimeout: the handler did not end within 1m. Pass the handler's signal to what the handler awaits, such as fetch(url, { signal }), or raise handlerTimeout"
    )
  })
})
