/** Pull consumers: a batch when there is room for it, settled later. */
import { assert, describe, it } from "@effect/vitest"
import { BatchPolicy, Broker, Producer, Puller } from "@requeue/core"
import { PermanentError } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { MemoryBroker } from "../src/index.ts"
import { open, turns, type VirtualBroker } from "./virtualBroker.ts"

const send = (broker: VirtualBroker, ...bodies: ReadonlyArray<string>) =>
  broker.requeue.sendBatch(
    "q",
    bodies.map((body) => ({ body }))
  )

const bodies = <A>(batch: Puller.PulledBatch<A> | undefined): ReadonlyArray<A> | undefined =>
  batch?.messages.map(({ body }) => body)

const none = { ready: 0, inFlight: 0, delayed: 0 }

describe("pull", () => {
  it("takes nothing until it is asked, then what is there, up to the batch size", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q", { batch: { maxBatchSize: 2, maxBatchTimeout: 0 } })
    await send(broker, "a", "b", "c")
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 3, inFlight: 0, delayed: 0 })
    const first = await broker.finish(puller.pull())
    assert.deepStrictEqual(bodies(first), ["a", "b"])
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 1, inFlight: 2, delayed: 0 })
    const second = await broker.finish(puller.pull())
    assert.deepStrictEqual(bodies(second), ["c"])
    second!.settle()
    first!.settle()
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), none)
  })

  it("waits for a message, but no longer than wait; 0 asks for what is there", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q")
    assert.isUndefined(await broker.finish(puller.pull()))
    assert.strictEqual(broker.now(), 5000)
    const waiting = puller.pull({ wait: "1 minute" })
    await broker.advance("30 seconds")
    await send(broker, "late")
    assert.deepStrictEqual(bodies(await broker.finish(waiting)), ["late"])
    assert.strictEqual(broker.now(), 35_000)
    await send(broker, "here")
    assert.deepStrictEqual(bodies(await broker.finish(puller.pull({ wait: 0 }))), ["here"])
    assert.isUndefined(await broker.finish(puller.pull({ wait: 0 })))
  })

  it("the wait is for a first message: its batch may take its time to fill, and nothing is hidden", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q", {
      batch: { maxBatchSize: 10, maxBatchTimeout: "5 seconds" }
    })
    const pulling = puller.pull({ wait: "1 second" })
    await broker.advance("900 millis")
    await send(broker, "a")
    await broker.advance("3 seconds")
    await send(broker, "b")
    const batch = await broker.finish(pulling)
    assert.deepStrictEqual([bodies(batch), broker.now()], [["a", "b"], 5900])
    batch!.settle()
  })

  it("takes no more than those who wait can have, also beside an open batch", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q", { batch: { maxBatchSize: 2, maxBatchTimeout: 0 } })
    await send(broker, "a")
    const open1 = await broker.finish(puller.pull())
    await send(broker, "b", "c", "d")
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 3, inFlight: 1, delayed: 0 })
    assert.deepStrictEqual(bodies(await broker.finish(puller.pull())), ["b", "c"])
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 1, inFlight: 3, delayed: 0 })
    open1!.settle()
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 1, inFlight: 2, delayed: 0 })
  })

  it("what an interrupted pull had gathered goes back", async () => {
    const program = Effect.gen(function* () {
      const { admin } = yield* Broker.Broker
      const producer = yield* Producer.make("q")
      const puller = yield* Puller.make("q", { batch: BatchPolicy.make({ maxBatchTimeout: "1 minute" }) })
      const pulling = yield* Effect.forkChild(puller.pull({ wait: "1 hour" }), { startImmediately: true })
      yield* producer.send("a")
      assert.deepStrictEqual(yield* admin.counts("q"), { ready: 0, inFlight: 1, delayed: 0 })
      yield* Fiber.interrupt(pulling)
      yield* Effect.yieldNow
      assert.deepStrictEqual(yield* admin.counts("q"), { ready: 1, inFlight: 0, delayed: 0 })
    })
    const quiet = Layer.merge(MemoryBroker.layer(), Layer.succeed(References.MinimumLogLevel, "None"))
    await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(quiet)))
  })

  it("concurrent pulls get different messages, in the order in which they asked", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q", { batch: { maxBatchSize: 1 } })
    const pulls = [puller.pull(), puller.pull(), puller.pull()]
    await send(broker, "a", "b", "c")
    const batches = await broker.finish(Promise.all(pulls))
    assert.deepStrictEqual(batches.map(bodies), [["a"], ["b"], ["c"]])
  })

  it("no more than maxOpen batches are unsettled; a further pull waits for one to end", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q", { maxOpen: 1, batch: { maxBatchSize: 1 } })
    await send(broker, "a", "b")
    const first = await broker.finish(puller.pull())
    assert.isUndefined(await broker.finish(puller.pull({ wait: "1 second" })))
    const second = puller.pull()
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 1, inFlight: 1, delayed: 0 })
    first!.settle()
    assert.deepStrictEqual(bodies(await broker.finish(second)), ["b"])
  })

  it("an interrupted pull loses nothing, at whatever moment", async () => {
    const program = Effect.gen(function* () {
      const { admin } = yield* Broker.Broker
      const producer = yield* Producer.make("q")
      const puller = yield* Puller.make("q")
      const fates = new Set<string>()
      for (let moment = 0; moment < 6; moment++) {
        const pulling = yield* Effect.forkChild(puller.pull({ wait: "1 hour" }), { startImmediately: moment > 0 })
        yield* producer.send("a")
        for (let turn = 1; turn < moment; turn++) yield* Effect.yieldNow
        pulling.interruptUnsafe()
        const exit = yield* Fiber.await(pulling)
        fates.add(exit._tag)
        const batch = Exit.isSuccess(exit) ? exit.value : yield* puller.pull({ wait: 0 })
        assert.deepStrictEqual(bodies(batch), ["a"], `interrupted at moment ${moment}`)
        assert.strictEqual(batch!.messages[0]!.attempts, 1)
        batch!.settle()
        yield* Effect.yieldNow
        assert.deepStrictEqual(yield* admin.counts("q"), none)
      }
      assert.deepStrictEqual([...fates], ["Failure", "Success"])
    })
    const quiet = Layer.merge(MemoryBroker.layer(), Layer.succeed(References.MinimumLogLevel, "None"))
    await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(quiet)))
  })
})

describe("a pulled batch", () => {
  it("acks and retries before it is settled, as in a handler", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q")
    await send(broker, "a", "b", "c")
    const batch = await broker.finish(puller.pull())
    batch!.messages[0]!.ack()
    batch!.messages[1]!.retry({ delay: "1 minute" })
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 1, delayed: 1 })
    batch!.settle()
    batch!.fail(new Error("too late"))
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 0, delayed: 1 })
  })

  it("fails: what has no verdict is retried under the policy, or dead-lettered", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q", { retry: { maxRetries: 1 }, retryDelay: "1 second" })
    await send(broker, "a", "b")
    const first = await broker.finish(puller.pull())
    first!.messages[0]!.ack()
    first!.fail(new Error("no"))
    await turns()
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 0, delayed: 1 })
    const second = await broker.finish(puller.pull())
    assert.strictEqual(second!.messages[0]!.attempts, 2)
    second!.fail(new PermanentError({ message: "never" }))
    await turns()
    assert.deepStrictEqual(await broker.waiting("q.dlq"), [`"b"`])
  })

  it("fails once: a policy's immediate retries need a handler that could run again", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q", { retry: { maxRetries: 0, immediate: 2 } })
    await send(broker, "a")
    const batch = await broker.finish(puller.pull())
    batch!.fail(new Error("no"))
    await turns()
    assert.deepStrictEqual(await broker.waiting("q.dlq"), [`"a"`])
  })

  it("is released uncounted, but for what has its verdict", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q")
    await send(broker, "a", "b")
    const batch = await broker.finish(puller.pull())
    batch!.messages[0]!.ack()
    batch!.release()
    await turns()
    const again = await broker.finish(puller.pull())
    assert.deepStrictEqual(
      again!.messages.map(({ attempts, body }) => [body, attempts]),
      [["b", 1]]
    )
  })
})
