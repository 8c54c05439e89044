/** Where workerd's behaviour is not the obvious one, the Cloudflare Queues face behaves as it does. */
import { assert, describe, it, vi } from "@effect/vitest"
import type { Broker } from "@requeue/core"
import * as Cloudflare from "@requeue/cloudflare"
import * as Effect from "effect/Effect"
import { open, turns, type VirtualBroker } from "./virtualBroker.ts"

/** Runs a handler over a batch of the messages a and b. */
const handle = async (
  broker: VirtualBroker,
  queue: NonNullable<Cloudflare.QueueWorker<any, any>["queue"]>, // Any, because the bodies do not matter.
  settings: Partial<Cloudflare.ConsumerSettings> = {}
): Promise<void> => {
  await Cloudflare.consume(broker.requeue, { queue: "q", max_batch_size: 2, ...settings }, { queue }, {})
  await Cloudflare.producer(broker.requeue, "q").sendBatch([{ body: "a" }, { body: "b" }])
  await turns()
}

const throws = (): never => {
  throw new Error("a trap")
}

describe("the delay of a retry", () => {
  it("of Cloudflare's own backoff, base ** attempts, ends at the longest delay and costs no neighbour", async () => {
    await using broker = await open()
    const attempts: Array<number> = []
    const handler: NonNullable<Cloudflare.QueueWorker["queue"]> = ({ messages }) => {
      for (const message of messages) {
        if (message.body !== "a") continue
        attempts.push(broker.now() / 1000)
        message.retry({ delaySeconds: 30 ** message.attempts })
      }
    }
    await handle(broker, handler, { max_retries: 5 })
    await broker.advance("4 days")
    const starts = [0, 30, 930, 27_930, 114_330, 200_730]
    assert.deepStrictEqual(
      attempts.map((at, index) => at - starts[index]!).every((late) => late >= 0 && late <= 5 * 6),
      true
    )
    assert.deepStrictEqual(await broker.waiting("q.dlq"), [`"a"`])
  })

  it.each<readonly [string, any, number]>([
    ["text", "9", 9000],
    ["a symbol", Symbol("9"), 60_000],
    ["an object that throws", { valueOf: throws }, 60_000]
  ])("that is %s decides, and never throws", async (_, delaySeconds, expected) => {
    await using broker = await open()
    await handle(broker, ({ messages }) => messages[0]!.retry({ delaySeconds }), { retry_delay: 60 })
    assert.deepStrictEqual<unknown>(await broker.later("q"), [["a", expected]])
  })

  it("is not looked at in a call that comes too late: nobody would catch what it throws", async () => {
    await using broker = await open()
    let late: Cloudflare.MessageBatch | undefined
    await handle(broker, (batch) => void (late = batch))
    // Any, because a worker in JavaScript may pass anything.
    const options: ReadonlyArray<any> = [
      { delaySeconds: -1 },
      { delaySeconds: Symbol("1") },
      { delaySeconds: { valueOf: throws } },
      Object.defineProperty({}, "delaySeconds", { get: throws }),
      5
    ]
    for (const each of options) {
      late!.messages[0]!.retry(each)
      late!.retryAll(each)
    }
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 0, delayed: 0 })
  })

  it("is not looked at either once the handler's time is up", async () => {
    await using broker = await open()
    let late: Cloudflare.MessageBatch | undefined
    await handle(broker, (batch) => {
      late ??= batch
      return new Promise<void>(() => {})
    })
    await broker.advance("11 minutes")
    const delay: any = 5 // Any, because a worker in JavaScript may pass anything.
    late!.messages[0]!.retry(delay)
  })
})

describe("a dead-letter queue", () => {
  it("may have any name, also discard", async () => {
    await using broker = await open()
    await handle(broker, (batch) => batch.retryAll(), { max_retries: 0, dead_letter_queue: "discard" })
    assert.deepStrictEqual(await broker.waiting("discard"), [`"a"`, `"b"`])
  })
})

describe("a TypeError is what is thrown for", () => {
  it("a batch of no messages", async () => {
    await using broker = await open()
    const error = await Cloudflare.producer(broker.requeue, "q")
      .sendBatch([])
      .catch((e: unknown) => e)
    assert.instanceOf(error, TypeError)
    assert.strictEqual(
      error.message,
      "queue.sendBatch (queue q): messages must have at least one entry, got none. Call it only with messages"
    )
  })

  it.each<Cloudflare.QueueContentType>(["json", "v8", "text", "bytes"])(
    "a body of undefined as %s",
    async (contentType) => {
      await using broker = await open()
      const queue = Cloudflare.producer(broker.requeue, "q")
      const sends = [
        queue.send(undefined, { contentType }),
        queue.sendBatch([
          { body: "good", contentType: "text" },
          { body: undefined, contentType }
        ])
      ]
      for (const error of await Promise.all(sends.map((send) => send.catch((e: unknown) => e)))) {
        assert.instanceOf(error, TypeError)
        assert.match(error.message, /^queue\.send(Batch)? \(queue q\): (messages\[1\]: )?body must not be undefined/)
      }
      assert.deepStrictEqual(await broker.waiting("q"), [])
    }
  )
})

describe("a broker that does not count", () => {
  it.each<readonly [string, Effect.Effect<never>]>([
    ["ever", Effect.never],
    ["ever, and cannot be interrupted", Effect.uninterruptible(Effect.never)]
  ])("%s holds up no send and no worker: their metrics are 0 after a second", async (_, counts) => {
    await using broker = await open({}, (service) => ({
      ...service,
      admin: { ...service.admin, counts: () => counts }
    }))
    const seen: Array<unknown> = []
    const worker: Cloudflare.QueueWorker = {
      queue: ({ messages, metadata }) => void seen.push(broker.now(), messages.length, metadata.metrics.backlogCount)
    }
    const answer = await broker.finish(Cloudflare.producer(broker.requeue, "q").send(1))
    assert.deepStrictEqual(answer, { metadata: { metrics: { backlogCount: 0, backlogBytes: 0 } } })
    assert.strictEqual(broker.now(), 1000)
    await Cloudflare.consume(broker.requeue, { queue: "q", max_batch_timeout: 0 }, worker, {})
    await broker.advance("1 minute")
    assert.deepStrictEqual(seen, [2000, 1, 0])
    assert.deepStrictEqual((await broker.finish(broker.requeue.health())).consumers[0]?.counts, undefined)
    const error = await broker.finish(broker.requeue.counts("q", { timeout: "3 seconds" }).catch((e: unknown) => e))
    assert.strictEqual(
      String(error),
      "BrokerError: memory: counting messages on queue q: Timeout: the messages were not counted within 3s"
    )
  })

  it("is told once", async () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      const wrap = (service: Broker.Service) => ({
        ...service,
        admin: { ...service.admin, counts: () => Effect.never }
      })
      await using broker = await open({}, wrap, "Warn")
      const queue = Cloudflare.producer(broker.requeue, "q")
      await broker.finish(Promise.all([queue.send(1), queue.send(2)]))
      await broker.finish(queue.send(3))
      assert.strictEqual(errors.mock.calls.length, 1)
      assert.match(String(errors.mock.calls[0]), /level=WARN .*not counted within 1s; further times are not logged/)
    } finally {
      errors.mockRestore()
    }
  })
})
