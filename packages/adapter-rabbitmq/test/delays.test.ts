/** When delayed messages come: 2,000 of them, from 100 ms to 30 s, and none early. */
import * as Backoff from "@requeue/core/Backoff"
import * as Consumer from "@requeue/core/Consumer"
import * as Feasibility from "@requeue/core/Feasibility"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { assert, describe, test, vi } from "vitest"
import { RabbitMqOptions, RabbitMqPlan } from "../src/index.ts"
import { shared } from "./server.ts"
import { consume, type Run } from "./traps/trap.ts"
import { ids, on, outgoing, publishAll, queueName, until } from "./world.ts"

vi.setConfig({ testTimeout: 120_000 })

const { url, version } = await shared()

/** 29 delays from 100 ms to 30 s, evenly spread on a logarithmic scale. */
const mixed = Array.from({ length: 29 }, (_, index) => Math.round(100 * 300 ** (index / 28)))

const count = 2000

/**
 * On a machine that does nothing else, with REQUEUE_STRICT_DELAYS=1: one topology after the other, and late by under
 * 150 ms. Else both run at once beside whatever else there is.
 */
const strict = process.env["REQUEUE_STRICT_DELAYS"] === "1"
const bound = strict ? 150 : 1000

/** How late retries come, in milliseconds from when the handler asked for them, before anything is settled. */
const measure = async (topology: RabbitMqOptions.Topology, delayOf: (index: number) => number) => {
  const queue = queueName(topology)
  const due = new Map<string, number>()
  const late: Array<number> = []
  const retry = RetryPolicy.make({ maxRetries: mixed.length, backoff: Backoff.sequence(mixed) })
  await on({ url, topology }, (broker) =>
    Effect.gen(function* () {
      yield* Consumer.start<string>(queue, { retry, concurrency: 100 }, (message) => {
        const before = due.get(message.id)
        if (before !== undefined) return void late.push(performance.now() - before)
        const delay = delayOf(Number(message.id.slice(1)))
        due.set(message.id, performance.now() + delay)
        return message.retry({ delay })
      })
      // 500 a second: what is measured is the delays, not how fast all of them can be asked for at once.
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
    `${count} delays through ${topology} on ${version}, late in milliseconds: ` +
      `first ${at(0)}, median ${at(0.5)}, p99 ${at(0.99)}, last ${at(1)}`
  )
  assert.isAtLeast(sorted[0]!, 0, "early")
  assert.isBelow(at(0.99), bound, "late")
}

describe(
  `${count} delays of 100 ms to 30 s: none early, p99 late by under ${bound} ms`,
  { concurrent: !strict },
  () => {
    test("through the ladder", () => measure("ladder", (index) => mixed[index % mixed.length]!))
    test("through the levels", () => measure("levels", (index) => 100 + ((index * 7919) % 29_900)))
  }
)

describe("per-message TTL", () => {
  const retry = RetryPolicy.make({ backoff: Backoff.constant(100) })

  test("blocks at the head of its queue, and check says so beforehand", async () => {
    const queue = queueName("head")
    const runs: Array<Run> = []
    await on({ url, topology: "perMessageTtl" }, (broker) =>
      Effect.gen(function* () {
        const [finding] = Feasibility.check({ retry, onLimit: "fail" }, broker.capabilities)
        assert.strictEqual(finding?.answer._tag, "Emulated")
        assert.match(JSON.stringify(finding), /waits behind longer ones/)
        yield* consume(queue, runs, {})
        const sent = performance.now()
        yield* broker.publish([outgoing(queue, "long", { delay: 2000 }), outgoing(queue, "short", { delay: 200 })])
        yield* until("both", () => runs.length === 2, 10_000)
        const short = runs.find(({ id }) => id === "short")
        assert.isAtLeast(short!.at - sent, 1900)
      })
    )
  })

  test.each(["perMessageTtl", "perMessageTtlShared"] as const)("the plan of %s has a note of it", (topology) => {
    const settings = Result.getOrThrow(RabbitMqOptions.decode({ topology }))
    const plan = RabbitMqPlan.make({ queue: "orders", retry }, settings, "4.3.6")
    assert.match(RabbitMqPlan.format(plan as RabbitMqPlan.Plan), /note: head-of-line blocking/)
  })
})
