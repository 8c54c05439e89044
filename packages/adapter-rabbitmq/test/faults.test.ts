/** What happens to messages when servers, connections and consumers die: the books balance. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, test, vi } from "vitest"
import { server } from "./server.ts"
import { books, drainIds, ids, on, publishAll, queueName, reasonOf, until, work } from "./world.ts"

vi.setConfig({ testTimeout: 180_000 })

const one = await server()
const can = one.broker.nodes.length > 0

/** Kills that a run does; the issue's twenty with REQUEUE_KILLS=20. */
const kills = Number(process.env["REQUEUE_KILLS"] ?? 3)

describe("a broker that is killed", () => {
  test.runIf(can)(`${kills} times while 5,000 messages are in progress: nothing is lost`, async () => {
    const queue = queueName("killed")
    const all = ids(5000)
    const ledger = books()
    const resumed: Array<number> = []
    const rejections: Array<unknown> = []
    const onRejection = (error: unknown) => rejections.push(error)
    process.on("unhandledRejection", onRejection)
    const prefetch = 21
    await on({ url: one.url }, (broker) =>
      Effect.gen(function* () {
        const publishing = yield* Effect.forkChild(publishAll(broker, queue, all))
        yield* work(queue, ledger)
        for (let kill = 1; kill <= kills; kill++) {
          yield* until("progress", () => ledger.ended() >= Math.min(4500, 400 * kill))
          yield* Effect.promise(() => one.broker.kill())
          yield* Effect.sleep(300)
          yield* Effect.promise(() => one.broker.start())
          const up = Date.now()
          yield* until("a run after the start", () => ledger.lastRun > up, 30_000)
          resumed.push(Date.now() - up)
        }
        yield* Fiber.join(publishing)
        const missing = () => all.filter((id) => !ledger.acked.has(id) && !ledger.dead.has(id))
        yield* until(
          () => `an end of every message; of these there is none: ${missing().join(" ")}`,
          () => ledger.ended() === all.length,
          60_000
        )
        yield* Effect.sleep(500)
      })
    )
    process.off("unhandledRejection", onRejection)
    const letters = await drainIds(one.url, `${queue}.dlq`)
    const left = await drainIds(one.url, queue)
    const found = new Set([...ledger.acked, ...letters, ...left])
    const failing = all.filter((id) => Number(id.slice(1)) % 50 === 0)
    const again = [...ledger.runs].filter(([id, runs]) => {
      const number = Number(id.slice(1))
      return runs > (number % 50 === 0 ? 5 : number % 5 === 0 ? 3 : 1)
    })
    const stale = ledger.events.filter(
      (event) => event._tag === "SettleFailed" && reasonOf(event.error) === "QueueMismatch"
    )
    console.log(`resumed after ${resumed.map((ms) => `${ms}`).join(", ")} ms; ${again.length} messages ran again`)
    assert.deepStrictEqual(rejections, [])
    assert.strictEqual(found.size, all.length)
    assert.deepStrictEqual([...new Set(letters)].toSorted(), failing.toSorted())
    assert.strictEqual(stale.length, 0)
    // What the server forgot of our acks is remembered; what a handler had, or a publish that was not confirmed, is not.
    assert.isAtMost(again.length, kills * (prefetch + 100))
    for (const ms of resumed) assert.isAtMost(ms, 1000)
    await sleep(10)
  })
})

describe("a connection", () => {
  test("cut ten times in the middle of the work: nothing is lost", async () => {
    const queue = queueName("cut")
    const all = ids(2000)
    const ledger = books()
    await on({ url: one.proxied }, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, all)
        yield* work(queue, ledger)
        for (let cut = 1; cut <= 10; cut++) {
          yield* until("progress", () => ledger.ended() >= 150 * cut)
          one.proxy.cut()
        }
        yield* until("an end of every message", () => ledger.ended() === all.length)
        yield* Effect.sleep(500)
      })
    )
    const letters = await drainIds(one.url, `${queue}.dlq`)
    assert.deepStrictEqual(await drainIds(one.url, queue), [])
    assert.strictEqual(new Set([...ledger.acked, ...letters]).size, all.length)
    assert.deepStrictEqual([...new Set(letters)].toSorted(), [...ledger.dead].toSorted())
  })
})
