/** What keeps a redrive from doing harm. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, it } from "@effect/vitest"
import { Broker, BrokerError, Producer } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import { VirtualTime } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { MemoryBroker } from "../src/index.ts"
import { browsing } from "./browsing.ts"
import { open, turns } from "./virtualBroker.ts"

const all = { redriven: 0, filtered: 0, overRedriveLimit: 0, unknownOrigin: 0 }
const discouraged = () => Promise.reject(new Error("no"))

it("keeps to its rate, reports what is published and what is removed, and does not wait after the last letter", async () => {
  await using broker = await open()
  await broker.requeue.sendBatch("q.dlq", [{ body: 1 }, { body: 2 }, { body: 3 }])
  const times: Array<ReadonlyArray<number>> = []
  const onProgress = ({ published, redriven }: DeadLetters.RedriveReport) =>
    void times.push([broker.now(), published, redriven])
  const redriving = deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true, rate: 0.5, onProgress })
  assert.deepInclude(await broker.finish(redriving), { ...all, redriven: 3 })
  assert.deepStrictEqual(times, [
    [0, 1, 0],
    [0, 1, 1],
    [2000, 2, 1],
    [2000, 2, 2],
    [4000, 3, 2],
    [4000, 3, 3]
  ])
  assert.strictEqual(broker.now(), 4000)
})

it("passes over letters that have been redriven too often", async () => {
  await using broker = await open()
  await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, discouraged)
  await broker.requeue.send("q", 1)
  await turns()
  const letters = deadLetters(broker.requeue, "q.dlq")
  for (let round = 1; round <= 3; round++) {
    assert.deepInclude(await broker.finish(letters.redrive()), { ...all, redriven: 1 })
    await turns()
    const [letter] = await letters.list()
    assert.deepStrictEqual([letter!.redrives, letter!.origin!.attempts], [round, 1])
  }
  assert.deepInclude(await broker.finish(letters.redrive()), { ...all, overRedriveLimit: 1 })
  assert.deepInclude(await broker.finish(letters.redrive({ maxRedrives: 4 })), { ...all, redriven: 1 })
})

it("leaves letters that come while it works for the next time", async () => {
  await using broker = await open()
  const letters = deadLetters(broker.requeue, "q.dlq")
  const worker = await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, discouraged)
  await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
  await turns()
  // The consumer goes on, so that every letter comes back at once.
  const report = await broker.finish(letters.redrive({ rate: 1 }))
  assert.deepInclude(report, { ...all, redriven: 2 })
  await turns()
  assert.deepStrictEqual(
    (await letters.list()).map(({ redrives }) => redrives),
    [1, 1]
  )
  await broker.finish(worker.drain())
})

it("says what another reader has, after the second that a browser may take", async () => {
  await using broker = await open()
  await broker.requeue.sendBatch("q.dlq", [{ body: 1 }, { body: 2 }, { body: 3 }])
  const worker = await broker.requeue.consume("q.dlq", { prefetch: 0 }, () => new Promise(() => {}))
  await turns()
  const letters = deadLetters(broker.requeue, "q.dlq")
  assert.strictEqual(await broker.finish(letters.count()), 3)
  const report = await broker.finish(letters.redrive({ to: "q", create: true }))
  assert.deepInclude(report, { ...all, redriven: 2, queued: 0, held: 1 })
  await broker.finish(worker.drain("0 seconds"))
  assert.deepInclude(await broker.finish(letters.redrive({ to: "q", create: true })), { ...all, redriven: 1, held: 0 })
})

it("loses nothing when publishes fail midway, and fails with what it did", async () => {
  let left = 150
  await using broker = await open({}, (broker) => ({
    ...broker,
    publish: (messages) => {
      const detail = "cut"
      const error = new BrokerError.BrokerError({
        broker: "memory",
        operation: "publish",
        reason: "ConnectionLost",
        detail
      })
      return messages[0]!.queue === "q" && --left < 0 ? Effect.fail(error) : broker.publish(messages)
    }
  }))
  const entries = Array.from({ length: 250 }, (_, index) => ({ body: index, id: `${index}` }))
  await broker.requeue.sendBatch("q.dlq", entries)
  const letters = deadLetters(broker.requeue, "q.dlq")
  const filter = ({ metadata }: DeadLetters.DeadLetter) => metadata.id !== "7"
  const error: unknown = await broker.finish(
    letters.redrive({ to: "q", create: true, filter }).catch((thrown: unknown) => thrown)
  )
  assert.instanceOf(error, DeadLetters.DeadLettersStopped)
  const { cause, removed, report } = error as DeadLetters.DeadLettersStopped
  assert.deepStrictEqual([cause.reason, removed], ["ConnectionLost", 150])
  assert.deepInclude(report, { redriven: 150, unremoved: 0, unconfirmed: 49, filtered: 1, queued: 100 })
  assert.match(
    (error as Error).message,
    /^redrive of q\.dlq stopped: 150 letters removed, 100 are still there\. .*: cut\. Call it again to go on$/
  )
  const sent = (await Effect.runPromise(broker.control.snapshot("q"))).ready
  const { inFlight, ready: kept } = await Effect.runPromise(broker.control.snapshot("q.dlq"))
  assert.deepStrictEqual(inFlight, [])
  const idsOf = (deliveries: typeof sent) => deliveries.map(({ metadata }) => Number(metadata.id))
  assert.deepStrictEqual(
    idsOf(sent)
      .concat(idsOf(kept))
      .toSorted((a, b) => a - b),
    [...Array(250).keys()]
  )
  assert.isTrue(kept.every(({ attempts }) => attempts === 1))
  assert.deepStrictEqual(
    idsOf(kept),
    idsOf(kept).toSorted((a, b) => a - b)
  )
})

it("refuses numbers out of range, and the queue of dead letters itself for a target", async () => {
  await using broker = await open()
  const letters = deadLetters(broker.requeue, "q.dlq")
  const wrong = [
    [{ limit: 0 }, "DeadLetters.redrive (queue q.dlq): limit must be a whole number >= 1, got 0"],
    [{ limit: Number.NaN }, "DeadLetters.redrive (queue q.dlq): limit must be a whole number >= 1, got NaN"],
    [{ limit: 1.5 }, "DeadLetters.redrive (queue q.dlq): limit must be a whole number >= 1, got 1.5"],
    [{ maxRedrives: -1 }, "DeadLetters.redrive (queue q.dlq): maxRedrives must be a whole number >= 0, got -1"],
    [{ maxRedrives: 1.5 }, "DeadLetters.redrive (queue q.dlq): maxRedrives must be a whole number >= 0, got 1.5"],
    [{ rate: 0 }, "DeadLetters.redrive (queue q.dlq): rate must be a number >= 0.001, got 0"],
    [{ to: "q.dlq" }, `DeadLetters.redrive (queue q.dlq): to must be another queue, got "q.dlq"`],
    [{ to: "" }, `DeadLetters.redrive (queue q.dlq): to must have 1 to 200 characters, got ""`]
  ] as const
  for (const [options, message] of wrong) {
    const error = await letters.redrive(options).catch((error: unknown) => error)
    assert.instanceOf(error, RangeError)
    assert.strictEqual((error as Error).message, message)
  }
})

it("makes no queue again that is deleted after it was looked up", async () => {
  await using broker = await open({}, (broker) => {
    const counts: typeof broker.admin.counts = (queue) =>
      Effect.map(broker.admin.counts(queue), (now) => ({ ...now, isMissing: false }))
    return { ...broker, admin: { ...broker.admin, counts } }
  })
  await broker.requeue.send("q.dlq", 1)
  const letters = deadLetters(broker.requeue, "q.dlq")
  const [letter] = await broker.finish(letters.list())
  const options = { to: "q", create: false }
  for (const call of ["redrive", "park"] as const) {
    const report = await broker.finish(letters[call](options))
    assert.deepInclude(report, { ...all, published: 0, refused: 1 }, call)
  }
  const editing = letters.edit(letter!, { ...options, headers: { fixed: "yes" } })
  const error = await broker.finish(editing.catch((error: unknown) => error))
  assert.deepInclude(error, { reason: "QueueMissing", queue: "q" })
  assert.deepStrictEqual(await broker.waiting("q.dlq"), ["1"])
  assert.isTrue((await Effect.runPromise(broker.broker.admin.counts("q"))).isMissing)
})

it.effect("waits for letters that the broker has counted and is slow to hand over", () =>
  VirtualTime.run(
    Effect.gen(function* () {
      const broker = yield* Broker.Broker
      let isFirst = true
      const slow = browsing(({ next }) => ({
        next: (count) => {
          const delay = isFirst ? 3000 : 0
          isFirst = false
          return Effect.delay(next(count), delay)
        }
      }))
      const producer = yield* Producer.make("q.dlq")
      yield* producer.sendBatch([{ body: 1 }, { body: 2 }])
      const letters = yield* Effect.provideService(DeadLetters.make("q.dlq"), Broker.Broker, slow(broker))
      assert.deepInclude(yield* letters.redrive({ to: "q", create: true, dryRun: true }), { ...all, redriven: 2 })
    }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
  )
)

it("that is cut by the end of its connection rejects with what it did, and how to go on", async () => {
  for (const call of ["redrive", "park", "purge"] as const) {
    await using broker = await open()
    await broker.requeue.sendBatch(
      "q.dlq",
      Array.from({ length: 150 }, (_, body) => ({ body }))
    )
    await broker.requeue.consume("q", {}, () => {})
    const letters = deadLetters(broker.requeue, "q.dlq")
    const slowly = { rate: 1, to: "r", create: true }
    let asked = 0
    const forever = () => (asked++ === 0 ? undefined : new Promise<void>(() => {}))
    const working = call === "purge" ? letters.purge({ filter: () => true, audit: forever }) : letters[call](slowly)
    const failed = working.then(
      () => assert.fail("it came to its end"),
      (error: unknown) => error as DeadLetters.DeadLettersStopped
    )
    await broker.advance("1 second")
    await broker.finish(broker.requeue.close(0))
    const error = await broker.finish(failed)
    assert.instanceOf(error, DeadLetters.DeadLettersStopped)
    assert.deepInclude(error, { operation: call, queue: "q.dlq" })
    assert.deepStrictEqual([error.removed, error.report?.redriven], call === "purge" ? [100, undefined] : [2, 2])
    assert.match(
      error.message,
      /the connection was closed while it worked. Call connect again. Call it again to go on$/
    )
  }
})

it.effect("gives all back when its fiber is interrupted", () =>
  VirtualTime.run(
    Effect.gen(function* () {
      const { admin } = yield* Broker.Broker
      const producer = yield* Producer.make("q.dlq")
      yield* producer.sendBatch(Array.from({ length: 5 }, (_, body) => ({ body })))
      const letters = yield* DeadLetters.make("q.dlq")
      yield* Effect.timeoutOption(letters.redrive({ to: "q", create: true, rate: 1 }), "1500 millis")
      assert.deepStrictEqual(yield* admin.counts("q.dlq"), { ready: 3, inFlight: 0, delayed: 0 })
      assert.strictEqual((yield* admin.counts("q")).ready, 2)
    }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
  )
)
