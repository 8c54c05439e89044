/** Topics and channels are made once, however many messages wait for them. */
import { proxy } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { afterAll, assert, describe, test } from "vitest"
import { stored } from "../real/raw.ts"
import { server } from "./server.ts"
import { on, outgoing, queueName, until } from "../world.ts"

const one = await server()
const requests: Array<string> = []
const http = await proxy(one.broker.nodes[0]!.port + 1, (_, from, bytes) => {
  if (from !== "client") return
  const text = bytes.toString("latin1")
  for (const [request] of text.matchAll(/POST \S+\?/g)) requests.push(request)
})
afterAll(() => http.close())
const options = { ...one.direct, nsqdHttp: [`127.0.0.1:${http.port}`] }

const ids = Array.from({ length: 300 }, (_, index) => `m${index}`)
const together = { concurrency: "unbounded", discard: true } as const

/** Both requests, and nothing else. */
const madeOnce = ["POST /topic/create?", "POST /channel/create?"]

describe("a topic that many messages wait for", () => {
  test("is made once", async () => {
    const queue = queueName("burst")
    requests.length = 0
    await on(options, (broker) => Effect.forEach(ids, (id) => broker.publish([outgoing(queue, id)]), together))
    assert.deepStrictEqual(requests, madeOnce)
    assert.deepStrictEqual(await stored(one.http, queue), [ids.length])
  })

  test("is made for the others when the first one is given up", async () => {
    const queue = queueName("first")
    requests.length = 0
    await on(options, (broker) =>
      Effect.gen(function* () {
        http.blackhole(true)
        const [first, ...others] = yield* Effect.forEach(ids, (id) =>
          Effect.forkChild(broker.publish([outgoing(queue, id)]), { startImmediately: true })
        )
        yield* Fiber.interrupt(first!)
        http.blackhole(false)
        yield* Effect.forEach(others, Fiber.join, together)
      })
    )
    assert.deepStrictEqual(requests, madeOnce)
    assert.deepStrictEqual(await stored(one.http, queue), [ids.length - 1])
  })

  test("is asked for again after a failure, which all are told who waited", async () => {
    const queue = queueName("again")
    await on({ ...options, requestTimeout: 500 }, (broker) =>
      Effect.gen(function* () {
        http.refuse(true)
        http.cut()
        const errors = yield* Effect.forEach(ids, (id) => Effect.flip(broker.publish([outgoing(queue, id)])), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual([...new Set(errors.map(({ reason }) => reason))], ["ConnectionFailed"])
        http.refuse(false)
        requests.length = 0
        yield* Effect.forEach(ids, (id) => broker.publish([outgoing(queue, id)]), together)
      })
    )
    assert.deepStrictEqual(requests, madeOnce)
    assert.deepStrictEqual(await stored(one.http, queue), [ids.length])
  })

  test("fails what waits for it as soon as the broker is closed", async () => {
    const queue = queueName("closed")
    const { waiting } = await on({ ...options, publishTimeout: 60_000 }, (broker) =>
      Effect.gen(function* () {
        requests.length = 0
        http.blackhole(true)
        const sent = Effect.runPromise(Effect.flip(broker.publish([outgoing(queue, "a")])))
        yield* until("the request", () => requests.length > 0)
        return { waiting: sent }
      })
    ).finally(() => http.blackhole(false))
    assert.deepInclude(await waiting, { reason: "ConnectionFailed", detail: "the broker was closed" })
  }, 30_000)
})
