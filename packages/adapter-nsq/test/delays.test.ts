/** When delayed messages come: within the server's cap by REQ, beyond it hop by hop, and never early. */
import * as Backoff from "@requeue/core/Backoff"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Effect from "effect/Effect"
import { assert, describe, test, vi } from "vitest"
import { server } from "./server.ts"
import { channels } from "./raw.ts"
import { consume, ids, no, on, outgoing, publishAll, queueName, until, type Run } from "./world.ts"

vi.setConfig({ testTimeout: 120_000 })

/** 29 delays from 500 ms to 20 s, evenly spread on a logarithmic scale. */
const mixed = Array.from({ length: 29 }, (_, index) => Math.round(500 * 40 ** (index / 28)))
const count = 1000

/** On a machine that does nothing else, with REQUEUE_STRICT_DELAYS=1. */
const bound = process.env["REQUEUE_STRICT_DELAYS"] === "1" ? 500 : 1500

const { direct } = await server()

describe(`${count} delays of 500 ms to 20 s on a channel that is warm`, () => {
  test(`none early, p99 late by under ${bound} ms`, async () => {
    const queue = queueName("mixed")
    const due = new Map<string, number>()
    const late: Array<number> = []
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(0) })
    await on(direct, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, [], { retry, concurrency: 100 }, (message) => {
          const before = due.get(message.id)
          if (before !== undefined) return void late.push(performance.now() - before)
          const delay = mixed[Number(message.id.slice(1)) % mixed.length]!
          due.set(message.id, performance.now() + delay)
          return message.retry({ delay })
        })
        // An nsqd looks at a new channel's deferred messages only after up to 5 s.
        yield* Effect.sleep(6000)
        for (let from = 0; from < count; from += 25) {
          yield* publishAll(broker, queue, ids(count).slice(from, from + 25))
          yield* Effect.sleep(50)
        }
        const said = () => `${count} messages, ${late.length} came`
        yield* until(said, () => late.length === count, 60_000)
      })
    )
    const sorted = late.toSorted((a, b) => a - b)
    const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!)
    console.log(
      `${count} delays by REQ, late in milliseconds: ` +
        `first ${at(0)}, median ${at(0.5)}, p99 ${at(0.99)}, last ${at(1)}`
    )
    assert.isAtLeast(sorted[0]!, 0, "early")
    assert.isBelow(at(0.99), bound, "late")
  })
})

// What 2 h are to the usual cap of 1 h, in seconds: more than two hops.
const cap = 2000
const delay = 5000
const capped = await server({ flags: { "max-req-timeout": `${cap}ms` } })
const [wire] = capped.wires

describe(`a delay of ${delay} ms where nsqd takes ${cap} ms at most`, () => {
  const hops = (queue: string) => wire.sent("DPUB").filter(({ args }) => args[0]?.startsWith(queue))

  test("is kept hop by hop: the handler runs again not before, and as the second attempt", async () => {
    const queue = queueName("hops")
    const runs: Array<Run> = []
    let before = 0
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) })
    await on(capped.wired, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry }, (message) => (message.attempts === 1 ? no() : undefined))
        // An nsqd looks at a new channel's deferred messages only after up to 5 s: one message waits for that, another
        // is measured.
        yield* broker.publish([outgoing(queue, "first")])
        yield* until("retries that nsqd looks at", () => runs.length === 2, 30_000)
        before = hops(queue).length
        yield* broker.publish([outgoing(queue, "m")])
        yield* until("the second run", () => runs.length === 4, 30_000)
        yield* Effect.sleep(200)
      })
    )
    const [one, two] = runs.slice(2) as [Run, Run]
    assert.deepStrictEqual(
      runs.map(({ attempts, id }) => [id, attempts]),
      [
        ["first", 1],
        ["first", 2],
        ["m", 1],
        ["m", 2]
      ]
    )
    const took = two.at - one.at
    assert.isAtLeast(took, delay)
    console.log(`${delay} ms over hops of ${cap} ms took ${Math.round(took)} ms`)
    const sent = hops(queue).slice(before)
    assert.isAtLeast(sent.length, 3)
    for (const { args } of sent) assert.isAtMost(Number(args[1]), cap)
    assert.isBelow(took, delay + sent.length * bound)
    const left = await channels(capped.http, queue)
    for (const each of left) assert.deepStrictEqual([each.ready, each.inFlight, each.deferred], [0, 0, 0], each.topic)
  })

  test("is kept for a send as well, and nothing else on the connection suffers", async () => {
    const queue = queueName("sends")
    const runs: Array<Run> = []
    const sent = new Map<string, number>()
    await on(capped.wired, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { concurrency: 10 })
        const names = ids(50)
        const connections = wire.sent("IDENTIFY").length
        yield* Effect.forEach(
          names,
          (id, index) =>
            Effect.suspend(() => {
              sent.set(id, performance.now())
              return broker.publish([outgoing(queue, id, { delay: index === 25 ? delay : 0 })])
            }),
          { concurrency: "unbounded", discard: true }
        )
        yield* until("the others", () => runs.length === 49, 5000)
        yield* until("all", () => runs.length === 50, 30_000)
        assert.strictEqual(wire.sent("IDENTIFY").length, connections, "a connection was made again")
      })
    )
    const last = runs.find(({ id }) => id === "m25")!
    assert.isAtLeast(last.at - sent.get("m25")!, delay)
    assert.deepStrictEqual(new Set(runs.map(({ attempts }) => attempts)), new Set([1]))
  })
})
