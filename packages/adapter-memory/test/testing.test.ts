/** The broker for users' tests, used as a user would: no Effect, no faults, no control. */
import { deadLetters } from "@requeue/operations/promise"
import { readFile } from "node:fs/promises"
import { afterEach, assert, describe, expect, it, vi } from "@effect/vitest"
import { exponential, queue, sequence, text } from "@requeue/core/promise"
import * as Testing from "../src/Testing.ts"

const never = () => new Promise(() => {})
const broken = () => Promise.reject(new Error("503"))
const twice = { retry: { maxRetries: 2, backoff: sequence(["10 seconds", "1 minute"]) } }

const rejection = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => assert.fail("it was not rejected"),
    (error: Error) => error.message
  )

describe("Testing.open", () => {
  it("fails three times, 10 s and 60 s apart, and is then a dead letter; nothing else happens", async () => {
    await using broker = await Testing.open()
    const seen: Array<readonly [number, number]> = []
    await broker.requeue.consume("webhooks", twice, async ({ attempts }) => {
      seen.push([broker.now(), attempts])
      throw new Error("503")
    })
    const id = await broker.requeue.send("webhooks", { url: "u" })
    await broker.advance(0)
    assert.deepStrictEqual(seen, [[0, 1]])
    await broker.advance(9999)
    assert.strictEqual(seen.length, 1)
    await broker.advance(1)
    assert.deepStrictEqual(seen.slice(1), [[10_000, 2]])
    await broker.advance("59 seconds")
    assert.strictEqual(seen.length, 2)
    await broker.waitUntilIdle({ within: "1 second" })
    assert.deepStrictEqual(seen.slice(2), [[70_000, 3]])
    const [letter, ...others] = await broker.deadLettersOf("webhooks")
    assert.deepStrictEqual(others, [])
    const { attempts, body, error, queue: place, reason } = letter!
    assert.deepStrictEqual(
      { attempts, body, error, place, reason },
      {
        attempts: 3,
        body: { url: "u" },
        error: { name: "Error", message: "503" },
        place: "webhooks.dlq",
        reason: "retries-exhausted"
      }
    )
    const error503 = { name: "Error", message: "503" }
    const about = { queue: "webhooks", id }
    assert.deepStrictEqual(broker.happened(), [
      { _tag: "Sent", at: 0, ...about, delay: 0 },
      { _tag: "Received", at: 0, ...about, attempts: 1 },
      { _tag: "RetryScheduled", at: 0, ...about, attempts: 1, delay: 10_000, error: error503 },
      { _tag: "Received", at: 10_000, ...about, attempts: 2 },
      { _tag: "RetryScheduled", at: 10_000, ...about, attempts: 2, delay: 60_000, error: error503 },
      { _tag: "Received", at: 70_000, ...about, attempts: 3 },
      {
        _tag: "DeadLettered",
        at: 70_000,
        ...about,
        attempts: 3,
        reason: "retries-exhausted",
        target: "webhooks.dlq",
        error: error503
      }
    ])
    await broker.advance("1 day")
    await broker.expectNothingElse()
  })

  it("advance stops at every moment on the way", async () => {
    await using broker = await Testing.open()
    const seen: Array<number> = []
    await broker.requeue.consume("q", twice, () => {
      seen.push(broker.now())
      return broken()
    })
    await broker.requeue.send("q", 1)
    await broker.advance("1 hour")
    assert.deepStrictEqual(seen, [0, 10_000, 70_000])
    assert.strictEqual(broker.now(), 3_600_000)
  })

  it("waitUntilIdle goes as far as it must and no further", async () => {
    await using broker = await Testing.open()
    await broker.requeue.consumeBatch("q", { batch: { maxBatchSize: 10, maxBatchTimeout: "5 seconds" } }, () => {})
    await broker.requeue.send("q", 1)
    await broker.requeue.send("q", 2, { delay: "1 minute" })
    await broker.requeue.send("unconsumed", 3, { delay: "1 hour" })
    await broker.waitUntilIdle()
    assert.strictEqual(broker.now(), 65_000)
  })

  it("waits for what handlers do with the real world before it moves the clock", async () => {
    await using broker = await Testing.open()
    const seen: Array<number> = []
    await broker.requeue.consume("q", twice, async () => {
      await readFile(import.meta.filename)
      await new Promise((resume) => setTimeout(resume, 30))
      seen.push(broker.now())
      throw new Error("503")
    })
    await broker.requeue.send("q", 1)
    await broker.waitUntilIdle()
    assert.deepStrictEqual(seen, [0, 10_000, 70_000])
  })

  it("waits for a handler that never ends once, and then goes on to its timeout", async () => {
    await using broker = await Testing.open({ promiseTimeout: 20 })
    await broker.requeue.consume("q", { handlerTimeout: "30 seconds", retry: { maxRetries: 0 } }, never)
    await broker.requeue.send("q", 1)
    await broker.waitUntilIdle()
    assert.strictEqual(broker.now(), 30_000)
    assert.strictEqual((await broker.deadLettersOf("q"))[0]?.error.name, "HandlerTimeout")
  })

  it("takes jitter from a fixed seed", async () => {
    const times = async () => {
      await using broker = await Testing.open()
      const retry = { maxRetries: 5, backoff: exponential("1 second", { jitter: "full" }) }
      await broker.requeue.consume("q", { retry }, broken)
      await broker.requeue.send("q", 1)
      await broker.waitUntilIdle()
      return broker.happened().map(({ at }) => at)
    }
    const [first, second] = [await times(), await times()]
    assert.deepStrictEqual(first, second)
    assert.isAbove(new Set(first).size, 3)
  })

  it("begins at the present time", async () => {
    await using broker = await Testing.open()
    let timestamp = 0
    await broker.requeue.consume("q", {}, (message) => void (timestamp = message.timestamp))
    await broker.requeue.send("q", 1)
    await broker.waitUntilIdle()
    assert.approximately(timestamp, Date.now(), 10_000)
  })

  it("finish moves the clock for whoever waits for it", async () => {
    await using broker = await Testing.open({ promiseTimeout: 20 })
    const puller = await broker.requeue.puller("q")
    assert.isUndefined(await broker.finish(puller.pull({ wait: "20 seconds" })))
    assert.strictEqual(broker.now(), 20_000)
    await broker.requeue.consume("q2", {}, never)
    await broker.requeue.send("q2", 1)
    await broker.advance(0)
    await broker.finish(broker.requeue.close("5 seconds"))
    assert.strictEqual(broker.now(), 25_000)
    await expect(broker.finish(Promise.reject(new Error("mine")))).rejects.toThrow("mine")
  })
})

describe("what was sent, and what was given up", () => {
  it("tells sends apart from retries and dead letters, and decodes by the queue's codec", async () => {
    await using broker = await Testing.open()
    const lines = queue("lines", { codec: text })
    await broker.requeue.consume(lines, { retry: { maxRetries: 1 } }, broken)
    await broker.advance("1 second")
    const id = await broker.requeue.send(lines, "hello", { headers: { tenant: "a" }, delay: "2 seconds" })
    await broker.waitUntilIdle()
    const headers = { tenant: "a", "content-type": "text/plain; charset=utf-8" }
    assert.deepStrictEqual(await broker.sent(lines), [{ at: 1000, id, body: "hello", headers, delay: 2000 }])
    const [letter] = await broker.deadLettersOf(lines)
    assert.deepStrictEqual([letter?.at, letter?.body, letter?.headers], [3000, "hello", headers])
    assert.deepStrictEqual(await broker.sent("lines.dlq"), [])
  })

  it("shows the bytes of a body that cannot be decoded, and counts a redrive as sent", async () => {
    await using broker = await Testing.open()
    await broker.requeue.send(queue("q", { codec: text }), "no json")
    await broker.requeue.consume("q", {}, () => {})
    await broker.waitUntilIdle()
    const [letter] = await broker.deadLettersOf("q")
    assert.strictEqual(letter?.reason, "undecodable")
    assert.strictEqual(new TextDecoder().decode(letter?.body), "no json")
    await deadLetters(broker.requeue, "q.dlq").redrive()
    assert.strictEqual((await broker.sent("q")).length, 2)
  })

  it("shows the letters of all queues that share a dead-letter queue, each with its origin", async () => {
    await using broker = await Testing.open()
    for (const queue of ["one", "two"]) {
      const retry = { maxRetries: 0, deadLetter: "graves" }
      await broker.requeue.consume(queue, { retry }, () => Promise.reject(new Error("no")))
      await broker.requeue.send(queue, 1)
      await broker.waitUntilIdle()
    }
    const origins = (await broker.deadLettersOf("one")).map(({ origin }) => origin)
    assert.deepStrictEqual(origins, ["one", "two"])
    await expect(broker.deadLettersOf("elsewhere")).rejects.toThrow(
      /^deadLettersOf: elsewhere: there is no such queue\. Start/
    )
  })

  it.each([
    ["orders.dlq", /no such queue\. Start the consumer whose policy names it first, or correct the name$/],
    ["orders", /no such queue\. For the dead letters of orders, use deadLettersOf$/]
  ])("says what to do about %s, which is missing", async (name, message) => {
    await using broker = await Testing.open()
    await expect(broker.deadLetters(name)).rejects.toThrow(message)
  })

  it("leaves out what the broker did not confirm", async () => {
    await using broker = await Testing.open({ faults: { duplicateOnLostConfirmation: 1 } })
    await expect(broker.requeue.send("q", 1)).rejects.toThrow("the confirmation was lost")
    assert.deepStrictEqual(await broker.sent("q"), [])
    await broker.expectNothingElse()
  })

  it("leaves out a settlement that failed", async () => {
    await using broker = await Testing.open({ faults: { failSettle: { every: 2, reason: "LeaseLost" } } })
    await broker.requeue.consume("q", {}, () => {})
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await broker.waitUntilIdle()
    const tags = Map.groupBy(broker.happened(), ({ _tag }) => _tag)
    assert.deepStrictEqual(
      ["Sent", "Received", "Succeeded"].map((tag) => tags.get(tag as Testing.Happening["_tag"])?.length),
      [2, 3, 2]
    )
  })
})

describe("an assertion that fails", () => {
  it("waitUntilIdle names what is left", async () => {
    await using broker = await Testing.open()
    await broker.requeue.consume("webhooks", twice, broken)
    await broker.requeue.send("webhooks", 1, { id: "a" })
    assert.strictEqual(
      await rejection(broker.waitUntilIdle({ within: "1 minute" })),
      "expected every consumer to be idle within 1m, but a message of webhooks is delayed for another 10s (attempt 3, id a)"
    )
  })

  it("waitUntilIdle tells a handler that never ends", async () => {
    await using broker = await Testing.open({ promiseTimeout: 20 })
    await broker.requeue.consume("q", { handlerTimeout: "unlimited" }, never)
    await broker.requeue.send("q", 1, { id: "a" })
    assert.strictEqual(
      await rejection(broker.waitUntilIdle()),
      "expected every consumer to be idle within 30d, but a message of q is in flight (attempt 1, id a). " +
        "Nothing waits for the clock. Does a handler never end, or does a puller not pull?"
    )
  })

  it("waitUntilIdle tells a message that never ends", async () => {
    await using broker = await Testing.open()
    const retry = { maxRetries: "unlimited", backoff: sequence(["1 second"]) } as const
    await broker.requeue.consume("q", { retry }, broken)
    await broker.requeue.send("q", 1, { id: "a" })
    assert.strictEqual(
      await rejection(broker.waitUntilIdle()),
      "expected every consumer to be idle within 30d, but a message of q is delayed for another 1s (attempt 10002, id a). " +
        "The clock was moved to 2h 46m. Is a message retried for ever?"
    )
  })

  it("advance tells a message that never ends and needs no time for it", async () => {
    // Less patient, because all of that time it is busy.
    const patch = {
      file: "internal/testing/realTime.ts",
      text: "const restTimeout = 2000",
      replacement: "const restTimeout = 500"
    }
    const impatient: typeof Testing = await import(
      /* @vite-ignore */ `../src/Testing.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`
    )
    await using broker = await impatient.open()
    await broker.requeue.consume("q", { retry: { maxRetries: "unlimited" } }, broken)
    await broker.requeue.send("q", 1)
    assert.strictEqual(
      await rejection(broker.advance(0)),
      "the clock does not move, but the program never becomes idle. Is a message retried for ever without a delay?"
    )
  })

  it("expectNothingElse lists what happened, and what will", async () => {
    await using broker = await Testing.open()
    await broker.requeue.consume("webhooks", twice, broken)
    await broker.requeue.send("webhooks", 1, { id: "a" })
    assert.strictEqual(
      await rejection(broker.expectNothingElse()),
      `expected nothing else, but
- a message of webhooks was sent at 0ms (id a)
- a message of webhooks was delivered at 0ms (attempt 1, id a)
- a message of webhooks was retried with a delay of 10s at 0ms (attempt 1, id a)
- a message of webhooks is delayed for another 10s (attempt 2, id a)`
    )
    broker.happened()
    assert.strictEqual(
      await rejection(broker.expectNothingElse()),
      "expected nothing else, but a message of webhooks is delayed for another 10s (attempt 2, id a)"
    )
    await broker.waitUntilIdle()
    broker.happened()
    await broker.expectNothingElse()
  })

  it("says that a duration is none", async () => {
    await using broker = await Testing.open()
    assert.match(
      await rejection(broker.advance(-1)),
      /^advance: duration: must be a duration from 0ms to 3650d, got -1/
    )
    assert.match(await rejection(broker.waitUntilIdle({ within: Number.NaN })), /^waitUntilIdle: within must be/)
  })

  it("finish tells a promise that does not wait for the clock", async () => {
    await using broker = await Testing.open()
    assert.strictEqual(
      await rejection(broker.finish(never())),
      "finish: the promise is not settled, and moving the clock does not settle it"
    )
  })
})

describe("beside fake timers", () => {
  afterEach(() => vi.useRealTimers())

  it("works when they come later", async () => {
    await using broker = await Testing.open()
    vi.useFakeTimers()
    await broker.requeue.consume("q", twice, broken)
    await broker.requeue.send("q", 1)
    await broker.waitUntilIdle()
    assert.strictEqual(broker.now(), 70_000)
    assert.strictEqual((await broker.deadLettersOf("q")).length, 1)
  })

  it("refuses to open under them", async () => {
    vi.useFakeTimers()
    assert.match(await rejection(Testing.open()), /^Testing.open: fake timers replace setImmediate/)
  })
})
