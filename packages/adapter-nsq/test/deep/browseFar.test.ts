/** Reads more dead letters than one connection may hold, from an nsqd that is far away. */
import { proxy } from "@requeue/brokers"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { afterAll, assert, test } from "vitest"
import { server } from "./server.ts"
import { ids, on, publishAll, queueName, until } from "../world.ts"

const one = await server()
const { port } = one.broker.nodes[0]!

/** Away by 50 ms, there and back. */
const far = await proxy(port)
const http = await proxy(port + 1)
for (const each of [far, http]) each.delay(25)
afterAll(() => Promise.all([far.close(), http.close()]))
const distant = { nsqd: [`127.0.0.1:${far.port}`], nsqdHttp: [`127.0.0.1:${http.port}`] }

/** nsqd gives 2,500 to a connection. */
const names = ids(6000)

const isBack = (queue: string, count: number) =>
  Effect.runPromise(
    until("all are back", async () => {
      const { inFlight, ready } = await on(one.direct, (broker) => broker.admin.counts(queue))
      return ready === count && inFlight === 0
    })
  )

test(
  "6,000 messages are shown once each, over three connections, and are there again",
  { timeout: 60_000 },
  async () => {
    const queue = queueName("long")
    await on(one.direct, (broker) => publishAll(broker, queue, names))
    await on(distant, () =>
      Effect.gen(function* () {
        const letters = yield* DeadLetters.make(queue)
        const seen = yield* letters.list({ limit: 10_000 })
        assert.deepStrictEqual(seen.map(({ id }) => id).toSorted(), names.toSorted())
      })
    )
    await isBack(queue, names.length)
    await on(one.direct, () =>
      Effect.gen(function* () {
        const { browsed, total } = yield* (yield* DeadLetters.make(queue)).group({ limit: 10_000 })
        assert.deepStrictEqual([browsed, total], [6000, 6000])
      })
    )
    await isBack(queue, names.length)
  }
)

test("a browser that loses a connection fails, and nsqd gives its messages again", { timeout: 60_000 }, async () => {
  const queue = queueName("lost")
  await on(one.direct, (broker) => publishAll(broker, queue, ids(300)))
  await on({ ...distant, messageTimeout: 1000 }, (broker) =>
    Effect.gen(function* () {
      const browser = yield* broker.admin.browse({ queue, from: "ready", limit: 300 })
      const next = browser.next(100)
      assert.isAbove((yield* next).length, 0)
      far.cut()
      const error = yield* Effect.flip(Effect.forever(next))
      assert.strictEqual(error.reason, "ConnectionLost")
    })
  )
  await isBack(queue, 300)
})

test("a browser whose topic is deleted does not say that its messages come back", async () => {
  const queue = queueName("deleted")
  await on(one.direct, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(300))
      const browser = yield* broker.admin.browse({ queue, from: "ready", limit: 300 })
      const next = browser.next(100)
      yield* next
      const url = `http://${one.http[0]}/topic/delete?topic=${queue}`
      assert.isTrue(yield* Effect.promise(async () => (await fetch(url, { method: "POST" })).ok))
      const error = yield* Effect.flip(Effect.forever(next))
      assert.match(error.message, /ConnectionLost: .* when their lease ends, unless their topic was deleted/)
    })
  )
})
