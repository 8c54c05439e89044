/** `message.fail`, `prefetch`, `pause`, `resume` and `run`, as a program without Effect has them. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, expect, it } from "@effect/vitest"
import { Broker } from "@requeue/core"
import { ConnectionClosed, type Event, PermanentError, RetryLaterError } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { open, turns } from "./virtualBroker.ts"

describe("message.fail", () => {
  it("gives one message of a batch an error of its own", async () => {
    await using broker = await open()
    const failed: Array<string> = []
    const seen: Array<string> = []
    const onEvent = (event: Event): void => {
      if (event._tag === "AttemptFailed") failed.push(`${event.id} ${event.error.name}`)
    }
    await broker.requeue.consumeBatch("q", { onEvent, batch: { maxBatchSize: 3 } }, ({ messages }) => {
      for (const message of messages) {
        seen.push(`${message.id} ${broker.now()}`)
        if (message.id === "bad") message.fail(new PermanentError("no account"))
        if (message.id === "busy" && message.attempts === 1) {
          message.fail(new RetryLaterError({ message: "busy", retryAfter: 30 }))
        }
      }
    })
    await broker.requeue.sendBatch(
      "q",
      ["good", "bad", "busy"].map((id) => ({ id, body: 1 }))
    )
    await turns()
    await broker.advance("1 minute")
    assert.deepStrictEqual(failed, ["bad PermanentError", "busy RetryLaterError"])
    // The retry waits for its time, and for its batch.
    assert.deepStrictEqual(seen, ["good 0", "bad 0", "busy 0", "busy 35000"])
    const letters = await deadLetters(broker.requeue, "q.dlq").list()
    assert.deepStrictEqual(
      letters.map(({ id, origin }) => [id, origin?.reason, origin?.error.message]),
      [["bad", "permanent", "no account"]]
    )
  })

  it("refuses wrong options by its name", async () => {
    await using broker = await open()
    const said: Array<string> = []
    await broker.requeue.consume("q", {}, (message) => {
      try {
        message.fail(new Error("no"), { delaySeconds: 5 } as never)
      } catch (error) {
        said.push((error as Error).message)
      }
    })
    await broker.requeue.send("q", 1)
    await turns()
    assert.match(said[0] ?? "", /^message\.fail: unknown option delaySeconds\. Did you mean delay\?/)
  })
})

describe("prefetch", () => {
  it("of 0 leaves a message that no handler has room for to another consumer", async () => {
    await using broker = await open()
    const done: Array<string> = []
    const slow = async ({ id }: { readonly id: string }): Promise<void> => {
      if (id === "long") await new Promise(() => {})
      done.push(id)
    }
    await broker.requeue.consume("q", { prefetch: 0, drainTimeout: 0 }, slow)
    await broker.requeue.send("q", 1, { id: "long" })
    await turns()
    await broker.requeue.send("q", 1, { id: "short" })
    await turns()
    assert.deepStrictEqual(done, [])
    await broker.requeue.consume("q", { prefetch: 0 }, slow)
    await turns()
    assert.deepStrictEqual(done, ["short"])
  })
})

describe("a worker", () => {
  it("that is paused takes nothing until it is resumed, and says so", async () => {
    await using broker = await open()
    const done: Array<number> = []
    const worker = await broker.requeue.consume("q", {}, ({ body }) => void done.push(body))
    worker.pause()
    await broker.requeue.send("q", 1)
    await turns()
    const { backoff, state } = worker.health()
    assert.deepStrictEqual([done, state, backoff[0]?.because], [[], "paused", "operator"])
    worker.resume()
    await turns()
    assert.deepStrictEqual([done, worker.health().state], [[1], "running"])
  })

  it("that is paused drains as any other", async () => {
    await using broker = await open()
    const worker = await broker.requeue.consume("q", {}, () => {})
    worker.pause()
    assert.isTrue((await broker.finish(worker.drain())).complete)
  })
})

describe("run", () => {
  it("gives an Effect the broker and a scope that ends before the connection does, and rejects with its error", async () => {
    await using broker = await open()
    const ended: Array<string> = []
    const held = Effect.gen(function* () {
      const { admin } = yield* Broker.Broker
      const seen = Effect.map(admin.counts("q"), ({ ready }) => void ended.push(`ready ${ready}`))
      yield* Effect.addFinalizer(() => Effect.orDie(seen))
      return (yield* admin.counts("q")).ready
    })
    await broker.requeue.send("q", 1)
    assert.strictEqual(await broker.requeue.run(Effect.orDie(held)), 1)
    assert.deepStrictEqual(ended, [])
    await expect(broker.requeue.run(Effect.fail(new Error("mine")))).rejects.toThrow("mine")
    await broker.requeue.close()
    assert.deepStrictEqual(ended, ["ready 1"])
    await expect(broker.requeue.run(Effect.void)).rejects.toBeInstanceOf(ConnectionClosed)
  })

  it("of an Effect that is under way when the connection closes rejects with ConnectionClosed", async () => {
    await using broker = await open()
    const running = broker.requeue.run(Effect.never).catch((error: unknown) => error)
    await broker.requeue.close()
    assert.instanceOf(await running, ConnectionClosed)
  })
})
