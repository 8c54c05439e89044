/** Letters that are read one after the other, in virtual time. */
import { deadLetters, delayedMessages } from "@requeue/operations/promise"
import { assert, describe, expect, it } from "@effect/vitest"
import { Broker, Producer } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import { ConnectionClosed } from "@requeue/core/promise"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { MemoryBroker } from "../src/index.ts"
import { open, type VirtualBroker } from "./virtualBroker.ts"

const numbers = (count: number) => Array.from({ length: count }, (_, n) => String(n))

const fill = async (broker: VirtualBroker, count: number) => {
  for (let from = 0; from < count; from += 500) {
    const ids = numbers(count).slice(from, from + 500)
    await broker.requeue.sendBatch(
      "q.dlq",
      ids.map((id) => ({ id, body: Number(id) }))
    )
  }
}

const inFlight = async (broker: VirtualBroker) => (await broker.requeue.counts("q.dlq")).inFlight

describe("a read of dead letters", () => {
  it("brings all of them, oldest first, in pages that nobody sees", async () => {
    await using broker = await open()
    await fill(broker, 2500)
    const seen: Array<string> = []
    for await (const { id } of deadLetters(broker.requeue, "q.dlq").read()) seen.push(id)
    assert.deepStrictEqual(seen, numbers(2500))
    assert.strictEqual(await deadLetters(broker.requeue, "q.dlq").count(), 2500)
  })

  it("brings those that the filter means, up to the limit", async () => {
    await using broker = await open()
    await fill(broker, 2500)
    const seen: Array<string> = []
    let asked = 0
    const filter = ({ metadata }: DeadLetters.DeadLetter) => {
      asked++
      return Number(metadata.id) % 700 === 0
    }
    for await (const { id } of deadLetters(broker.requeue, "q.dlq").read({ filter, limit: 3 })) seen.push(id)
    assert.deepStrictEqual([seen, asked], [["0", "700", "1400"], 1401])
  })

  it.effect("gives all others their turn while a slow filter works", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      let [spent, inTurn, most] = [0n, 0, 0]
      const turn = (): NodeJS.Immediate =>
        setImmediate(() => {
          inTurn = 0
          next = turn()
        })
      let next = turn()
      yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(next)))
      /** Takes 5 ms. */
      const filter = () => {
        spent += 5_000_000n
        most = Math.max(most, ++inTurn)
        return true
      }
      const work = Effect.gen(function* () {
        const producer = yield* Producer.make("q.dlq")
        yield* producer.sendBatch(numbers(90).map((id) => ({ id, body: 0 })))
        const letters = yield* DeadLetters.make("q.dlq")
        const { redriven } = yield* letters.redrive({ to: "q", create: true, dryRun: true, filter })
        return [redriven, (yield* letters.list({ filter })).length]
      })
      const own = Object.assign({}, clock, {
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() + spent
      })
      const found = yield* work.pipe(Effect.provide(MemoryBroker.layer()), Effect.provideService(Clock.Clock, own))
      assert.deepStrictEqual(found, [90, 90])
      assert.isAtMost(most, 8)
    })
  )

  it("ends with the loop, whether that is left or fails, and can begin again", async () => {
    await using broker = await open()
    await fill(broker, 5)
    const letters = deadLetters(broker.requeue, "q.dlq")
    for await (const _ of letters.read()) break
    const failing = async () => {
      for await (const { id } of letters.read()) throw new Error(id)
    }
    assert.strictEqual(await failing().catch(({ message }) => message), "0")
    assert.deepStrictEqual([await letters.count(), await inFlight(broker)], [5, 0])
    const all = letters.read()
    for (const _ of [1, 2]) {
      const seen: Array<string> = []
      for await (const { id } of all) seen.push(id)
      assert.deepStrictEqual(seen, numbers(5))
    }
  })

  it("ends with the connection, whoever holds its iterator, before that is closed", async () => {
    let browsers = 0
    const wrap = ({ admin, ...service }: Broker.Service): Broker.Service => ({
      ...service,
      admin: {
        ...admin,
        browse: (options) =>
          Effect.tap(admin.browse(options), () =>
            Effect.acquireRelease(
              Effect.sync(() => browsers++),
              () => Effect.sync(() => browsers--)
            )
          )
      }
    })
    await using broker = await open({}, wrap)
    await fill(broker, 1500)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const abandoned = letters.read({ limit: 5 })[Symbol.asyncIterator]()
    await abandoned.next()
    const loop = async () => {
      for await (const { id } of letters.read()) if (id === "10") await broker.requeue.close()
    }
    const error: unknown = await broker.finish(loop().catch((cause: unknown) => cause))
    assert.instanceOf(error, ConnectionClosed)
    assert.strictEqual(browsers, 0)
    assert.isTrue((await abandoned.return!()).done)
  })

  it("refuses wrong options at the call", async () => {
    await using broker = await open()
    const letters = deadLetters(broker.requeue, "q.dlq")
    for (const limit of [0, 1.5, Number.NaN]) {
      const refused = new RegExp(`limit must be a whole number >= 1, got ${limit}$`)
      assert.throws(() => letters.read({ limit }), refused)
      for (const call of [() => letters.list({ limit }), () => letters.group({ limit })])
        assert.match(await call().catch(({ message }) => message), refused)
      assert.match(
        await delayedMessages(broker.requeue, "q")
          .list({ limit })
          .catch(({ message }) => message),
        refused
      )
    }
  })

  it("of a queue that is missing is an error, and makes none", async () => {
    await using broker = await open()
    const letters = deadLetters(broker.requeue, "q.dlq")
    const reading = letters.read()[Symbol.asyncIterator]()
    await expect(reading.next()).rejects.toMatchObject({ reason: "QueueMissing" })
    await expect(letters.list()).rejects.toMatchObject({ reason: "QueueMissing" })
    assert.isFalse(await letters.exists())
    await broker.requeue.send("q.dlq", 1)
    assert.isTrue(await letters.exists())
  })
})

it("list and group tell how far they are, after each page", async () => {
  await using broker = await open()
  await fill(broker, 2500)
  const told: Array<DeadLetters.Progress> = []
  const letters = deadLetters(broker.requeue, "q.dlq")
  await letters.group({ limit: 2500, onProgress: (progress) => told.push(progress) })
  assert.deepStrictEqual(
    told,
    [1000, 2000, 2500].map((browsed) => ({ browsed, total: 2500 }))
  )
})

describe("counts that are not exact", () => {
  /** A broker whose counts tell of three letters only after it has been asked so often. */
  const late = (asked: number, counts: Partial<Broker.Counts>) => {
    let left = asked
    const wrap = ({ admin, capabilities, ...service }: Broker.Service): Broker.Service => ({
      ...service,
      capabilities: { ...capabilities, exactCounts: false },
      admin: {
        ...admin,
        counts: (queue) =>
          Effect.map(admin.counts(queue), (exact) => (left-- > 0 ? { ...exact, ready: 0, ...counts } : exact))
      }
    })
    return wrap
  }

  it("that tell none hide no letter from a reader", async () => {
    await using broker = await open({}, late(5, {}))
    await fill(broker, 3)
    const letters = await deadLetters(broker.requeue, "q.dlq").list()
    assert.deepStrictEqual(
      letters.map(({ id }) => id),
      numbers(3)
    )
  })

  it.each([true, false])(
    "of letters that a browser returns are waited for by a purge of all, dry: %s",
    async (dryRun) => {
      await using broker = await open({}, late(3, { inFlight: 3 }))
      await fill(broker, 3)
      const letters = deadLetters(broker.requeue, "q.dlq")
      assert.strictEqual(await broker.finish(letters.purge({ all: true, dryRun })), 3)
      assert.strictEqual(broker.now(), 150)
    }
  )
})
