/** What the adapter says of its connections, of which it has two: one for consuming, one for publishing. */
import type { Connection } from "@requeue/core/Broker"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { both } from "../src/internal/link.ts"
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
