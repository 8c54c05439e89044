/** What the adapter says of its connections, of which it has two: one for consuming, one for publishing. */
import type { Connection } from "@requeue/core/Broker"
import { connect, isLive, isReady } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { assert, describe, expect, test } from "vitest"
import { both } from "../src/internal/link.ts"
import { RabbitMqBroker } from "../src/index.ts"
import { shared } from "./server.ts"
import { on, outgoing, queueName, until } from "./world.ts"

const one = await shared()

describe("two connections", () => {
  const up = (since: number): Connection => ({ state: "up", since })
  const down = (since: number): Connection => ({ state: "down", since })

  test.each([
    ["are up since the second came up", up(1), up(2), up(2)],
    ["are down since the first went down", down(1), down(2), down(1)],
    ["are down while one is", up(2), down(1), down(1)]
  ])("%s", (_, first, second, expected) => {
    assert.deepStrictEqual(both(first, second), expected)
    assert.deepStrictEqual(both(second, first), expected)
  })
})

test("a connection that cannot be made again is down since it was lost, and then up since it was made", async () => {
  const seen = await on({ url: one.proxied, reconnectFirst: 20 }, (broker) =>
    Effect.gen(function* () {
      const first = broker.connection()
      const cut = Date.now()
      one.proxy.refuse(true)
      one.proxy.cut()
      yield* until("the loss to be noticed", () => broker.connection().state === "down")
      const lost = broker.connection()
      yield* Effect.sleep(100)
      const still = broker.connection()
      one.proxy.refuse(false)
      const allowed = Date.now()
      yield* until("the connection", () => broker.connection().state === "up")
      yield* broker.publish([outgoing(queueName("up"), "a")])
      return { first, cut, lost, still, allowed, again: broker.connection() }
    })
  ).finally(() => one.proxy.refuse(false))
  const { again, allowed, cut, first, lost, still } = seen
  assert.strictEqual(first.state, "up")
  assert.deepStrictEqual(still, lost)
  assert.isTrue(first.since <= cut && cut <= lost.since && lost.since < allowed && allowed <= again.since)
})

test("a readiness probe passes, fails while the server cannot be reached, and passes again", async () => {
  const queue = queueName("probed")
  const layer = RabbitMqBroker.layer({ url: one.proxied, reconnectFirst: 20 })
  await using requeue = await connect(layer, { logLevel: "None" })
  await requeue.consume(queue, {}, () => {})
  const before = await requeue.health()
  one.proxy.refuse(true)
  one.proxy.cut()
  try {
    const ready = async () => isReady(await requeue.health())
    await expect.poll(ready).toBe(false)
    const asked = Date.now()
    const during = await requeue.health()
    assert.isBelow(Date.now() - asked, 2000)
    assert.deepStrictEqual(
      [during.connection.state, during.consumers[0]?.counts, isLive(during)],
      ["down", undefined, true]
    )
    one.proxy.refuse(false)
    await expect.poll(ready, { timeout: 10_000 }).toBe(true)
    assert.deepStrictEqual(before.consumers[0]?.counts?.ready, 0)
    assert.isTrue(isReady(before))
  } finally {
    one.proxy.refuse(false)
  }
})
