/** Browsing thousands of letters, far from the server, and browsers that lose their connection. */
import { proxy } from "@requeue/brokers"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { afterAll, assert, test } from "vitest"
import { shared } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { browse, drainIds, ids, on, outgoing, queueName, until } from "../world.ts"

const { url } = await shared()

/** Away by 50 ms, there and back. */
const far = await proxy(Number(new URL(url).port))
far.delay(25)
afterAll(() => far.close())
const distant = new URL(url)
distant.port = String(far.port)

const names = ids(3000)

const fill = (queue: string) => on({ url }, (broker) => broker.publish(names.map((id) => outgoing(queue, id))))

const countOf = (queue: string) => on({ url }, (broker) => Effect.map(broker.admin.counts(queue), ({ ready }) => ready))

const isBack = (queue: string) =>
  Effect.runPromise(until("all are back", async () => (await countOf(queue)) === names.length))

test("3,000 letters are browsed from far away, and are as they were", { timeout: 60_000 }, async () => {
  const queue = queueName("long")
  await fill(queue)
  await on({ url: distant.href }, () =>
    Effect.gen(function* () {
      const letters = yield* DeadLetters.make(queue)
      const told: Array<number> = []
      const { browsed, total } = yield* letters.group({ limit: 5000, onProgress: ({ browsed }) => told.push(browsed) })
      assert.deepStrictEqual([browsed, total], [3000, 3000])
      assert.isAbove(told.length, 2)
      const filter = ({ metadata }: { readonly metadata: { readonly id: string } }) => metadata.id === names[2500]
      const found = yield* letters.list({ filter, limit: 1 })
      assert.deepStrictEqual(
        found.map(({ id }) => id),
        [names[2500]]
      )
    })
  )
  await isBack(queue)
  assert.deepStrictEqual(await drainIds(url, queue), names)
})

test("a browser that loses its connection says so, and the server has all letters", { timeout: 60_000 }, async () => {
  const queue = queueName("lost")
  await fill(queue)
  await on({ url: distant.href }, (broker) =>
    Effect.gen(function* () {
      const { next } = yield* broker.admin.browse({ queue, from: "ready", limit: 3000 })
      assert.isAbove((yield* next(100)).length, 0)
      far.cut()
      const error = yield* Effect.flip(next(100))
      assert.include(["ConnectionLost", "ConnectionFailed"], error.reason)
    })
  )
  await isBack(queue)
  assert.deepStrictEqual([...(await drainIds(url, queue))].toSorted(), names.toSorted())
})

test("a browser that ends in the middle of a page leaves all letters in their order", { timeout: 60_000 }, async () => {
  const queue = queueName("middle")
  await fill(queue)
  await on({ url: distant.href }, (broker) =>
    Effect.gen(function* () {
      const { next } = yield* broker.admin.browse({ queue, from: "ready", limit: 3000 })
      assert.isAbove((yield* next(100)).length, 0)
      // Its messages are on their way by then, and their page is not complete.
      assert.isTrue((yield* Effect.timeoutOption(next(100), 80))._tag === "None")
    })
  )
  await isBack(queue)
  assert.deepStrictEqual(await drainIds(url, queue), names)
})

test("letters of a queue that another consumer alone reads are shown page by page", { timeout: 60_000 }, async () => {
  const queue = queueName("alone")
  const others = names.slice(0, 300)
  await raw(url, async (channel) => {
    await channel.assertQueue(queue, { arguments: { "x-queue-type": "classic", "x-single-active-consumer": true } })
    await channel.prefetch(1)
    await channel.consume(queue, () => {})
    await on({ url, queues: { [queue]: { assert: "passive" } } }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(others.map((id) => outgoing(queue, id)))
        const begun = performance.now()
        const seen = yield* browse(broker, queue, 1000)
        assert.isAtLeast(seen.length, 299)
        // Each page waits for half a second for what the other consumer leaves.
        assert.isBelow(performance.now() - begun, 20_000)
      })
    )
  })
})
