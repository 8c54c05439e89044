/** How a program without Effect asks how it is. */
import { ConnectionClosed, connect, deadLetterBudget, isLive, isReady } from "@requeue/core/promise"
import { assert, describe, test } from "vitest"
import { open } from "./virtualBroker.ts"

describe("requeue.health", () => {
  test("tells of the connection, every consumer and puller, and what waits", async () => {
    await using broker = await open()
    const { advance, finish, requeue } = broker
    await requeue.consume("orders", {}, () => new Promise(() => {}))
    await requeue.puller("jobs")
    await requeue.sendBatch("jobs", [{ body: 1 }, { body: 2, delay: "1 hour" }])
    await advance(1000)
    await requeue.send("orders", 1)
    await advance(1000)
    const health = await finish(requeue.health())
    const quiet = { state: "running", backoff: [], buffered: 0, quarantined: 0 }
    assert.deepStrictEqual(JSON.parse(JSON.stringify(health)), {
      broker: "memory",
      connection: { state: "up", since: 0 },
      consumers: [
        { queue: "orders", ...quiet, inProgress: 1, lastDelivery: 1000, counts: { ready: 0, inFlight: 1, delayed: 0 } },
        { queue: "jobs", ...quiet, inProgress: 0, counts: { ready: 1, inFlight: 0, delayed: 1 } }
      ]
    })
    assert.isTrue(isReady(health) && isLive(health))
  })

  test("forgets a consumer that was drained, and not one that has stopped itself", async () => {
    await using broker = await open()
    const { advance, finish, requeue } = broker
    const worker = await requeue.consume("orders", {}, () => {})
    const fails = () => Promise.reject(new Error("no"))
    await requeue.consume("jobs", { retry: { maxRetries: 0 }, deadLetterBudget: deadLetterBudget(1) }, fails)
    assert.strictEqual(worker.health().state, "running")
    await finish(worker.drain())
    await requeue.sendBatch("jobs", [{ body: 1 }, { body: 2 }])
    await advance(1000)
    const health = await finish(requeue.health())
    assert.deepStrictEqual(
      health.consumers.map(({ queue, state }) => [queue, state]),
      [["jobs", "stopped"]]
    )
    assert.deepStrictEqual([isReady(health), isLive(health)], [false, false])
  })

  test("rejects once the connection has been closed", async () => {
    const requeue = await connect("memory:")
    await requeue.close()
    const error = await requeue.health().catch((reason: unknown) => reason)
    assert.instanceOf(error, ConnectionClosed)
  })
})
