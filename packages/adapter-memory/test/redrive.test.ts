/** What keeps a redrive from doing harm. */
import { assert, it } from "@effect/vitest"
import { Broker, BrokerError, DeadLetters, Producer } from "@requeue/core"
import { VirtualTime } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { MemoryBroker } from "../src/index.ts"
import { open, turns } from "./virtualBroker.ts"

const all = { redriven: 0, filtered: 0, guarded: 0, homeless: 0 }
const discouraged = () => Promise.reject(new Error("no"))

it("keeps to its rate, and does not wait after the last letter", async () => {
  await using broker = await open()
  await broker.requeue.sendBatch("q.dlq", [{ body: 1 }, { body: 2 }, { body: 3 }])
  const times: Array<readonly [number, number]> = []
  const onProgress = ({ redriven }: DeadLetters.RedriveReport) => void times.push([broker.now(), redriven])
  const redriving = broker.requeue.deadLetters("q.dlq").redrive({ to: "q", rate: 0.5, onProgress })
  assert.deepStrictEqual(await broker.finish(redriving), { ...all, redriven: 3 })
  assert.deepStrictEqual(times, [
    [0, 1],
    [2000, 2],
    [4000, 3]
  ])
  assert.strictEqual(broker.now(), 4000)
})

it("passes over letters that have been redriven too often", async () => {
  await using broker = await open()
  await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, discouraged)
  await broker.requeue.send("q", 1)
  await turns()
  const letters = broker.requeue.deadLetters("q.dlq")
  for (let round = 1; round <= 3; round++) {
    assert.deepStrictEqual(await broker.finish(letters.redrive()), { ...all, redriven: 1 })
    await turns()
    const [letter] = await letters.list()
    assert.deepStrictEqual([letter!.redrives, letter!.origin!.attempts], [round, 1])
  }
  assert.deepStrictEqual(await broker.finish(letters.redrive()), { ...all, guarded: 1 })
  assert.deepStrictEqual(await broker.finish(letters.redrive({ maxRedrives: 4 })), { ...all, redriven: 1 })
})

it("leaves letters that come while it works for the next time", async () => {
  await using broker = await open()
  const letters = broker.requeue.deadLetters("q.dlq")
  const worker = await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, discouraged)
  await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
  await turns()
  // The consumer goes on, so that every letter comes back at once.
  const report = await broker.finish(letters.redrive({ rate: 1 }))
  assert.deepStrictEqual(report, { ...all, redriven: 2 })
  await turns()
  assert.deepStrictEqual(
    (await letters.list()).map(({ redrives }) => redrives),
    [1, 1]
  )
  await broker.finish(worker.drain())
})

it("loses nothing when a publish fails midway", async () => {
  const program = Effect.gen(function* () {
    const { broker, control } = yield* MemoryBroker.makeControlled()
    let left = 150
    const publish: typeof broker.publish = (messages) => {
      left -= messages.length
      const error = new BrokerError.BrokerError({
        broker: "memory",
        operation: "publish",
        reason: "ConnectionLost",
        detail: "cut"
      })
      return left >= 0 ? broker.publish(messages) : Effect.fail(error)
    }
    const producer = yield* Effect.provideService(Producer.make("q.dlq"), Broker.Broker, broker)
    yield* producer.sendBatch(Array.from({ length: 250 }, (_, index) => ({ body: index, id: `${index}` })))
    const letters = yield* Effect.provideService(DeadLetters.make("q.dlq"), Broker.Broker, { ...broker, publish })
    const error = yield* Effect.flip(letters.redrive({ to: "q", filter: ({ metadata }) => metadata.id !== "7" }))
    assert.strictEqual(error.reason, "ConnectionLost")
    const sent = (yield* control.snapshot("q")).ready
    const { inFlight, ready: kept } = yield* control.snapshot("q.dlq")
    assert.deepStrictEqual(inFlight, [])
    assert.isAbove(sent.length, 0)
    const idsOf = (deliveries: typeof sent) => deliveries.map(({ metadata }) => Number(metadata.id))
    assert.deepStrictEqual(
      idsOf(sent)
        .concat(idsOf(kept))
        .toSorted((a, b) => a - b),
      [...Array(250).keys()]
    )
    assert.deepStrictEqual(
      kept.map(({ attempts }) => attempts),
      kept.map(() => 1)
    )
    assert.deepStrictEqual(
      idsOf(kept),
      idsOf(kept).toSorted((a, b) => a - b)
    )
  })
  await Effect.runPromise(Effect.scoped(program))
})

it("refuses numbers out of range, and the queue of dead letters itself for a target", async () => {
  await using broker = await open()
  const letters = broker.requeue.deadLetters("q.dlq")
  const wrong = [
    [{ limit: 0 }, "deadLetters.redrive (queue q.dlq): limit must be a number >= 1, got 0"],
    [{ limit: Number.NaN }, "deadLetters.redrive (queue q.dlq): limit must be a number >= 1, got NaN"],
    [{ maxRedrives: -1 }, "deadLetters.redrive (queue q.dlq): maxRedrives must be a number >= 0, got -1"],
    [{ rate: 0 }, "deadLetters.redrive (queue q.dlq): rate must be a number >= 0.001, got 0"],
    [{ to: "q.dlq" }, `deadLetters.redrive (queue q.dlq): to must be another queue, got "q.dlq"`],
    [{ to: "" }, `deadLetters.redrive (queue q.dlq): to must have 1 to 200 characters, got ""`]
  ] as const
  for (const [options, message] of wrong) {
    const error = await letters.redrive(options).catch((error: unknown) => error)
    assert.instanceOf(error, RangeError)
    assert.strictEqual((error as Error).message, message)
  }
})

it.effect("waits for letters that the broker has counted and is slow to hand over", () =>
  VirtualTime.run(
    Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const fork = Effect.runForkWith(yield* Effect.context())
      const slow: typeof broker.subscribe = (options) =>
        broker.subscribe({
          ...options,
          onDelivery: (delivery) =>
            void fork(
              Effect.delay(
                Effect.sync(() => options.onDelivery(delivery)),
                3000
              )
            )
        })
      const producer = yield* Producer.make("q.dlq")
      yield* producer.sendBatch([{ body: 1 }, { body: 2 }])
      const letters = yield* Effect.provideService(DeadLetters.make("q.dlq"), Broker.Broker, {
        ...broker,
        subscribe: slow
      })
      assert.deepStrictEqual(yield* letters.redrive({ to: "q", dryRun: true }), { ...all, redriven: 2 })
    }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
  )
)
