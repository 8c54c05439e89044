/** How a program without Effect asks how it is. */
import { connect, deadLetterBudget, isLive, isReady } from "@requeue/core/promise"
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
    await requeue.consume("jobs", { retry: { maxRetries: 0 }, deadLetterBudget: deadLetterBudget({ max: 1 }) }, fails)
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

  test("tells a probe that comes after the end that the connection has been closed", async () => {
    const requeue = await connect("memory:")
    const begun = Date.now()
    await requeue.close()
    const health = await requeue.health()
    const { connection, consumers } = health
    assert.deepStrictEqual(
      [connection.state, connection.because, consumers],
      ["down", "this program has closed it", []]
    )
    assert.isAtLeast(connection.since, begun)
    assert.deepStrictEqual([isReady(health), isLive(health)], [false, true])
  })

  test("a consumer is down while its broker cannot be reached", async () => {
    let isUp = true
    await using broker = await open({}, (original) => ({
      ...original,
      connection: () => (isUp ? original.connection() : { state: "down" as const, since: 7, because: "refused" })
    }))
    const worker = await broker.requeue.consume("orders", {}, () => {})
    isUp = false
    const { state, trouble } = worker.health()
    assert.deepStrictEqual([state, trouble], ["down", { since: 7, because: "refused" }])
  })
})
