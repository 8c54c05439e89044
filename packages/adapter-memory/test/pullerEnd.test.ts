/** What ends a pulled batch, or a puller, when nobody settles. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { type Event, PullerDrained, queue } from "@requeue/core/promise"
import { open, turns } from "./virtualBroker.ts"

describe("the lease of a pulled batch", () => {
  it("is a failure when it ends, and the batch is deaf from then on", async () => {
    await using broker = await open()
    const events: Array<Event> = []
    const onEvent = (event: Event) => void events.push(event)
    const puller = await broker.requeue.puller("q", { lease: "1 minute", retry: { maxRetries: 0 }, onEvent })
    await broker.requeue.send("q", 1)
    const batch = await broker.finish(puller.pull())
    await broker.advance("59 seconds")
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 1, delayed: 0 })
    await broker.advance("1 second")
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    assert.strictEqual(letter?.origin?.error.name, "LeaseExpired")
    assert.strictEqual(letter?.origin?.error.message, "lease: the pulled batch was not settled within 1m")
    events.length = 0
    batch!.settle()
    batch!.messages[0]!.ack()
    batch!.fail(new Error("no"))
    batch!.release()
    await turns()
    assert.deepStrictEqual(
      events.map((event) => (event._tag === "CallIgnored" ? event.call : event._tag)),
      ["AckAll", "Ack", "RetryAll"]
    )
    assert.strictEqual(await deadLetters(broker.requeue, "q.dlq").count(), 1)
  })

  it("is not missed by a batch that was settled: its later calls are told to nobody", async () => {
    await using broker = await open()
    const events: Array<Event> = []
    const puller = await broker.requeue.puller("q", { onEvent: (event) => void events.push(event) })
    await broker.requeue.send("q", 1)
    const batch = await broker.finish(puller.pull())
    batch!.settle()
    batch!.release()
    await broker.advance("1 minute")
    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag),
      ["Received", "Succeeded"]
    )
  })

  it("makes room for the next pull", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller<string>("q", { lease: "1 minute", maxOpen: 1 })
    await broker.requeue.send("q", "a")
    await broker.finish(puller.pull())
    const next = await broker.finish(puller.pull({ wait: "2 minutes" }))
    assert.deepStrictEqual([broker.now(), next!.messages[0]!.attempts], [60_000, 2])
  })
})

describe("a message whose codec answers when the pull is over", () => {
  it("goes back, for whoever pulls next", async () => {
    await using broker = await open()
    const answered = Promise.withResolvers<string>()
    const encode = (text: string) => new TextEncoder().encode(text)
    const codec = { contentType: "text/plain", encode, decode: () => answered.promise }
    const events: Array<Event> = []
    const options = { onEvent: (event: Event) => void events.push(event) }
    const puller = await broker.requeue.puller(queue("q", { codec }), options)
    await broker.requeue.send("q", "a")
    assert.isUndefined(await broker.finish(puller.pull({ wait: "1 second" })))
    answered.resolve("a")
    await turns()
    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag),
      ["Received", "Released"]
    )
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 1, inFlight: 0, delayed: 0 })
  })
})

describe("drain", () => {
  it("waits for open batches to be settled", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller("q")
    await broker.requeue.send("q", 1)
    const batch = await broker.finish(puller.pull())
    const draining = puller.drain("1 minute")
    await broker.advance("10 seconds")
    batch!.settle()
    assert.deepStrictEqual(await broker.finish(draining), { complete: true, interrupted: 0, elapsed: 10_000 })
    assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 0, delayed: 0 })
  })

  it("gives open batches back uncounted when the time is over", async () => {
    await using broker = await open()
    const ignored: Array<string> = []
    const onEvent = (event: Event) => void (event._tag === "CallIgnored" && ignored.push(event.call))
    const puller = await broker.requeue.puller("q", { lease: "1 hour", onEvent })
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    const batch = await broker.finish(puller.pull())
    batch!.messages[0]!.retry({ delay: "1 second" })
    const report = await broker.finish(puller.drain("10 seconds"))
    assert.deepStrictEqual(report, { complete: false, interrupted: 1, elapsed: 10_000 })
    const [left, ...others] = await deadLetters(broker.requeue, "q").list()
    assert.deepStrictEqual(others.length, 1)
    assert.deepStrictEqual(left!.history.length, 0)
    batch!.settle()
    assert.deepStrictEqual(ignored, ["AckAll"])
  })

  it("ends the pulls that wait, and further ones fail", async () => {
    await using broker = await open()
    const puller = await broker.requeue.puller("q")
    const waiting = puller.pull({ wait: "1 hour" })
    await turns()
    await broker.finish(puller.drain())
    assert.isUndefined(await waiting)
    assert.strictEqual(broker.now(), 0)
    const refused = await puller.pull().catch((error: unknown) => error)
    assert.instanceOf(refused, PullerDrained)
    assert.strictEqual(String(refused), "PullerDrained: pull: the puller of q was drained. Make another puller")
  })
})
