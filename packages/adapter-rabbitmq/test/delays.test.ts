/** When delayed messages come: 2,000 of them, from 100 ms to 30 s, and none early. */
import * as Backoff from "@requeue/core/Backoff"
import * as Consumer from "@requeue/core/Consumer"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Effect from "effect/Effect"
import { assert, describe, test, vi } from "vitest"
import type { RabbitMqOptions } from "../src/index.ts"
import { server } from "./server.ts"
import { ids, on, publishAll, queueName, until } from "./world.ts"

vi.setConfig({ testTimeout: 120_000 })

const one = await server()

/** 29 delays from 100 ms to 30 s, evenly spread on a logarithmic scale. */
const mixed = Array.from({ length: 29 }, (_, index) => Math.round(100 * 300 ** (index / 28)))

const count = Number(process.env["REQUEUE_DELAYS"] ?? 2000)

const measure = async (topology: RabbitMqOptions.Topology, delayOf: (index: number) => number) => {
  const queue = queueName(topology)
  const asked = new Map<string, { readonly at: number; readonly delay: number }>()
  const late: Array<number> = []
  await on({ url: one.url, topology }, (broker) =>
    Effect.gen(function* () {
      yield* Consumer.start<string>(
        queue,
        {
          retry: RetryPolicy.make({ maxRetries: mixed.length, backoff: Backoff.sequence(mixed) }),
          concurrency: 100
        },
        (message) => {
          const first = asked.get(message.id)
          if (first !== undefined) {
            late.push(Date.now() - first.at - first.delay)
            return
          }
          const delay = delayOf(Number(message.id.slice(1)))
          asked.set(message.id, { at: Date.now(), delay })
          message.retry({ delay })
        }
      )
      // 500 a second: what is measured is the delays, not how fast all of them can be asked for at once.
      for (let from = 0; from < count; from += 25) {
        yield* publishAll(broker, queue, ids(count).slice(from, from + 25))
        yield* Effect.sleep(50)
      }
      yield* until(
        () => `${count} messages, ${late.length} came`,
        () => late.length === count,
        60_000
      )
    })
  )
  const sorted = late.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!
  const seen = { earliest: sorted[0]!, median: at(0.5), p99: at(0.99), latest: sorted.at(-1)! }
  console.log(`${topology} on ${one.version}, milliseconds late: ${JSON.stringify(seen)}`)
  return seen
}

describe(`${count} delays of 100 ms to 30 s`, () => {
  test("through the ladder: none early, p99 late by under 150 ms", async () => {
    const { earliest, p99 } = await measure("ladder", (index) => mixed[index % mixed.length]!)
    assert.isAtLeast(earliest, 0)
    assert.isBelow(p99, 150)
  })

  test("through the levels: none early, p99 late by under 150 ms", async () => {
    const { earliest, p99 } = await measure("levels", (index) => 100 + ((index * 7919) % 29_900))
    assert.isAtLeast(earliest, 0)
    assert.isBelow(p99, 150)
  })
})
