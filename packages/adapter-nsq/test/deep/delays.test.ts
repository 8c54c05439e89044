/** When delayed messages come: within the server's cap by REQ, beyond it hop by hop, and never early. */
import { Backoff, RetryPolicy } from "@requeue/core"
import { Control } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { server } from "./server.ts"
import { channels } from "../real/raw.ts"
import {
  consume,
  ids,
  lateness,
  measured,
  no,
  outgoing,
  publishAll,
  queueName,
  until,
  type Run,
  now
} from "../world.ts"

/** 29 delays from 500 ms to 20 s, evenly spread on a logarithmic scale. */
const mixed = Array.from({ length: 29 }, (_, index) => Math.round(500 * 40 ** (index / 28)))
const count = 1000

/**
 * Milliseconds by which 99 of 100 may be late. nsqd looks for what is due in a loop of its own, which no undelayed message
 * goes through: where other processes keep its core busy, that loop falls behind by some of its rounds, and no control sees it.
 */
const bound = 500

const { direct } = await server()

describe(`${count} delays of 500 ms to 20 s on a channel that is warm`, () => {
  test(
    "none is early, and of a hundred at most one is late",
    measured(direct, (broker, control) =>
      Effect.gen(function* () {
        const queue = queueName("mixed")
        const asked = new Map<string, { readonly at: number; readonly delay: number }>()
        const arrivals: Array<Control.Arrival> = []
        const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(0) })
        yield* consume(queue, [], { retry, concurrency: 100 }, (message) => {
          const { id } = message
          const [before, at] = [asked.get(id), now()]
          if (before !== undefined) {
            const what = `${id}, asked for ${before.delay} ms`
            return void arrivals.push({ what, late: at - before.at - before.delay, bound, from: before.at, at })
          }
          const delay = mixed[Number(id.slice(1)) % mixed.length]!
          asked.set(id, { at: now(), delay })
          return message.retry({ delay })
        })
        yield* publishAll(broker, queue, ["w0"])
        yield* until("a retry that nsqd looks at", () => arrivals.length === 1)
        arrivals.pop()
        for (let from = 0; from < count; from += 25) {
          yield* publishAll(broker, queue, ids(count).slice(from, from + 25))
          // Spread, as work comes: all at once they would wait for each other.
          yield* Effect.sleep(50)
        }
        const said = () => `${count} messages, ${arrivals.length} came`
        yield* until(said, () => arrivals.length === count, 180_000)
        const sorted = arrivals.map(({ late }) => late).toSorted((a, b) => a - b)
        const at = (share: number) =>
          Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!)
        console.log(
          `${count} delays by REQ, late in milliseconds: ` +
            `first ${at(0)}, median ${at(0.5)}, p99 ${at(0.99)}, last ${at(1)}`
        )
        assert.isAtLeast(sorted[0]!, 0, "early")
        yield* Control.check(control, arrivals, 0.01)
      })
    )
  )
})

// What 2 h are to the usual cap of 1 h, in seconds: more than two hops.
const cap = 2000
const delay = 5000
const capped = await server({ flags: { "max-req-timeout": `${cap}ms` } })
const [wire] = capped.wires

describe(`a delay of ${delay} ms where nsqd takes ${cap} ms at most`, () => {
  const hops = (queue: string) => wire.sent("DPUB").filter(({ args }) => args[0]?.startsWith(queue))

  test(
    "is kept hop by hop: the handler runs again not before, and as the second attempt",
    measured(capped.wired, (broker, control) =>
      Effect.gen(function* () {
        const queue = queueName("hops")
        const runs: Array<Run> = []
        const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) })
        const consumer = yield* consume(queue, runs, { retry }, ({ attempts }) => (attempts === 1 ? no() : undefined))
        // An nsqd looks at a new channel's deferred messages only after up to 5 s: one message waits for that, another
        // is measured.
        yield* broker.publish([outgoing(queue, "first")])
        yield* until("retries that nsqd looks at", () => runs.length === 2)
        const before = hops(queue).length
        yield* broker.publish([outgoing(queue, "m")])
        yield* until("the second run", () => runs.length === 4)
        yield* consumer.drain()
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
        const left = yield* Effect.promise(() => channels(capped.http, queue))
        for (const each of left) {
          assert.deepStrictEqual([each.ready, each.inFlight, each.deferred], [0, 0, 0], each.topic)
        }
        const bound = sent.length * (lateness + broker.capabilities.delayResolution)
        yield* Control.check(control, [{ what: "the second run", late: took - delay, bound, from: one.at, at: two.at }])
      })
    )
  )

  test(
    "is kept for a send as well, and nothing else on the connection suffers",
    measured(capped.wired, (broker, control) =>
      Effect.gen(function* () {
        const queue = queueName("sends")
        const runs: Array<Run> = []
        const sent = new Map<string, number>()
        yield* consume(queue, runs, { concurrency: 10 })
        const connections = wire.sent("IDENTIFY").length
        yield* Effect.forEach(
          ids(50),
          (id, index) =>
            Effect.suspend(() => {
              sent.set(id, now())
              return broker.publish([outgoing(queue, id, { delay: index === 25 ? delay : 0 })])
            }),
          { concurrency: "unbounded", discard: true }
        )
        yield* until("all", () => runs.length === 50)
        assert.strictEqual(wire.sent("IDENTIFY").length, connections, "a connection was made again")
        const took = ({ at, id }: Run) => at - sent.get(id)!
        assert.isAtLeast(took(runs.find(({ id }) => id === "m25")!), delay)
        assert.deepStrictEqual(new Set(runs.map(({ attempts }) => attempts)), new Set([1]))
        const others = runs.filter(({ id }) => id !== "m25")
        yield* Control.check(
          control,
          others.map((run) => ({ what: run.id, late: took(run), bound: delay, from: sent.get(run.id)!, at: run.at }))
        )
      })
    )
  )
})
