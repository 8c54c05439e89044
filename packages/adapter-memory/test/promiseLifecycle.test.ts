/** Workers and connections from start to end, through the promise face. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it, vi } from "@effect/vitest"
import { connect, ConnectionClosed, deadLetterBudget, DeadLetterBudgetExhausted } from "@requeue/core/promise"
import { Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { MemoryBroker } from "../src/index.ts"
import { open, turns } from "./virtualBroker.ts"

const never = () => new Promise(() => {})

const rejection = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error("it was not rejected")
}

describe("a worker", () => {
  it("drains: no more is taken, what runs may end, what waits goes back uncounted", async () => {
    await using broker = await open()
    const gate = Promise.withResolvers<void>()
    const worker = await broker.requeue.consume("q", {}, () => gate.promise)
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }, { body: 3 }])
    await turns()
    const draining = worker.drain("1 minute")
    await turns()
    assert.strictEqual(worker.stats().state, "draining")
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 2, inFlight: 1, delayed: 0 })
    gate.resolve()
    assert.deepStrictEqual(await broker.finish(draining), { complete: true, interrupted: 0, elapsed: 0 })
    assert.strictEqual(worker.stats().state, "stopped")
    await worker.done()
    const letters = await deadLetters(broker.requeue, "q").list()
    assert.strictEqual(letters.length, 2)
    const attempts: Array<number> = []
    await broker.requeue.consume("q", {}, (message) => attempts.push(message.attempts))
    await turns()
    assert.deepStrictEqual(attempts, [1, 1])
  })

  it("interrupts what does not end in time, and the message is in its queue again", async () => {
    await using broker = await open()
    let aborted = false
    const worker = await broker.requeue.consume("q", {}, (_, { signal }) => {
      signal.addEventListener("abort", () => (aborted = true))
      return never()
    })
    await broker.requeue.send("q", 1)
    await turns()
    const report = await broker.finish(worker.drain("10 seconds"))
    assert.deepStrictEqual(report, { complete: false, interrupted: 1, elapsed: 10_000 })
    assert.isTrue(aborted)
    assert.deepStrictEqual(await broker.waiting("q"), ["1"])
  })

  it("may be drained again, also after the connection was closed", async () => {
    await using broker = await open()
    const worker = await broker.requeue.consume("q", {}, () => {})
    const first = await broker.finish(worker.drain())
    assert.deepStrictEqual(await worker.drain(), first)
    await broker.requeue.close()
    assert.deepStrictEqual(await worker.drain(), first)
    await worker.done()
  })

  it("leaving its await using block drains it", async () => {
    await using broker = await open()
    let stats
    {
      await using worker = await broker.requeue.consume("q", {}, () => {})
      stats = worker.stats
      assert.strictEqual(stats().state, "running")
    }
    assert.strictEqual(stats().state, "stopped")
  })

  it.each([
    ["made", deadLetterBudget({ max: 2 })],
    ["written as options", { max: 2 }]
  ])("stops itself when its budget of dead letters, %s, is used up, and done rejects", async (_, budget) => {
    await using broker = await open()
    const options = { retry: { maxRetries: 0 }, deadLetterBudget: budget }
    const worker = await broker.requeue.consume("q", options, () => Promise.reject(new Error("down")))
    const error = rejection(worker.done())
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }, { body: 3 }, { body: 4 }])
    assert.instanceOf(await broker.finish(error), DeadLetterBudgetExhausted)
    assert.deepStrictEqual(await broker.waiting("q"), ["3", "4"])
    assert.deepStrictEqual(await broker.waiting("q.dlq"), ["1", "2"])
    assert.strictEqual(worker.stats().state, "stopped")
    assert.instanceOf(await rejection(worker.done()), DeadLetterBudgetExhausted)
  })
})

describe("a connection", () => {
  it("waits for a broker that starts after the program, unless it is not to", async () => {
    const error = new BrokerError.BrokerError({
      broker: "memory",
      operation: "connect",
      reason: "ConnectionFailed",
      detail: "it starts"
    })
    let attempts = 0
    const layer = Layer.unwrap(
      Effect.suspend(() => (++attempts % 2 === 1 ? Effect.fail(error) : Effect.succeed(MemoryBroker.layer())))
    )
    assert.include(String(await rejection(connect(layer, { waitForBroker: 0 }))), "ConnectionFailed: it starts")
    attempts = 0
    await using requeue = await connect(layer)
    await requeue.send("q", 1)
    assert.strictEqual(attempts, 2)
  })

  it("close drains every worker, and the books balance", async () => {
    await using broker = await open()
    const queues = Array.from({ length: 20 }, (_, index) => `q${index}`)
    const done: Array<string> = []
    const workers = await Promise.all(
      queues.map((queue) => broker.requeue.consume<string>(queue, {}, async (message) => done.push(message.body)))
    )
    await Promise.all(queues.map((queue) => broker.requeue.send(queue, queue)))
    await broker.finish(broker.requeue.close())
    assert.deepStrictEqual(
      workers.map((worker) => worker.stats().state),
      queues.map(() => "stopped")
    )
    const left = await Promise.all(queues.map(broker.waiting))
    assert.sameMembers([...done, ...left.flat().map((body) => JSON.parse(body) as string)], queues)
  })

  it("close gives handlers that never end no more than the timeout", async () => {
    await using broker = await open()
    await broker.requeue.consume("q", { drainTimeout: "1 hour" }, never)
    await broker.requeue.send("q", 1)
    await turns()
    await broker.finish(broker.requeue.close("3 seconds"))
    assert.strictEqual(broker.now(), 3000)
    assert.deepStrictEqual(await broker.waiting("q"), ["1"])
  })

  it("a second close may cut the first one short", async () => {
    await using broker = await open()
    await broker.requeue.consume("q", {}, never)
    await broker.requeue.send("q", 1)
    await turns()
    const first = broker.requeue.close("1 hour")
    await broker.finish(broker.requeue.close("1 second"))
    await first
    assert.strictEqual(broker.now(), 1000)
    assert.deepStrictEqual(await broker.waiting("q"), ["1"])
    assert.instanceOf(await rejection(broker.requeue.close("soon" as "1 second")), RangeError)
  })

  it("a handler may send while close waits for it, and a worker that is starting is drained as well", async () => {
    await using broker = await open()
    await broker.requeue.consume("q", {}, async () => {
      await turns()
      await broker.requeue.send("next", "sent")
    })
    await broker.requeue.send("q", 1)
    await turns(2)
    const late = broker.requeue.consume("q", {}, () => {})
    await broker.finish(broker.requeue.close())
    assert.deepStrictEqual(await broker.waiting("next"), [`"sent"`])
    assert.strictEqual((await late).stats().state, "stopped")
  })

  it("everything after close rejects with ConnectionClosed; close itself may come again", async () => {
    const requeue = await connect("memory:", { logLevel: "None" })
    const worker = await requeue.consume("q", {}, () => {})
    const puller = await requeue.puller("q")
    const closing = requeue.close()
    assert.instanceOf(await rejection(requeue.consume("q", {}, () => {})), ConnectionClosed)
    await closing
    await requeue.close()
    const uses = [
      () => requeue.send("q", 1),
      () => requeue.sendBatch("q", [{ body: 1 }]),
      () => requeue.consume("q", {}, () => {}),
      () => requeue.puller("q"),
      () => puller.pull(),
      () => requeue.counts("q"),
      () => deadLetters(requeue, "q.dlq").list()
    ]
    for (const use of uses) {
      const error = await rejection(use())
      assert.instanceOf(error, ConnectionClosed)
      assert.strictEqual((error as Error).message, "the connection to the broker memory was closed. Call connect again")
    }
    assert.strictEqual(worker.stats().state, "stopped")
  })
})

describe("what is logged", () => {
  it("goes to standard error, and leaves standard output to the program", async () => {
    const [output, errors] = [vi.spyOn(console, "log"), vi.spyOn(console, "error")].map((spy) =>
      spy.mockImplementation(() => {})
    )
    try {
      await using requeue = await connect("memory:")
      const failed = Promise.withResolvers<void>()
      await requeue.consume("q", { onEvent: ({ _tag }) => _tag === "RetryScheduled" && failed.resolve() }, () =>
        Promise.reject(new Error("503"))
      )
      await requeue.send("q", 1)
      await failed.promise
      assert.match(String(errors!.mock.calls[0]), /level=WARN .*errorName=Error errorMessage=503/)
      assert.isEmpty(output!.mock.calls)
    } finally {
      vi.restoreAllMocks()
    }
  })
})

describe("close", () => {
  it("does not wait for a consumer that cannot start", async () => {
    const unreachable = Layer.effect(
      Broker.Broker,
      Effect.map(MemoryBroker.make(), (broker) => ({ ...broker, subscribe: () => Effect.never }))
    )
    const requeue = await connect(unreachable, { logLevel: "None" })
    const started = rejection(requeue.consume("q", {}, () => {}))
    const pulled = rejection(requeue.puller("q"))
    await turns()
    await requeue.close()
    assert.instanceOf(await started, ConnectionClosed)
    assert.instanceOf(await pulled, ConnectionClosed)
  })
})
