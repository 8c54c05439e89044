/** When delayed messages come: hundreds of them, from 100 ms to 30 s, and none early. */
import { Backoff, Consumer, RetryPolicy } from "@requeue/core"
import { Feasibility } from "@requeue/core/port"
import { Control } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { assert, describe, test, type TestContext } from "vitest"
import { RabbitMqOptions } from "../../src/index.ts"
import { server } from "../real/server.ts"
import { consume, type Run } from "./traps/trap.ts"
import { ids, measure, now, on, outgoing, publishAll, queueName, until } from "../world.ts"

// Its own: what others leave on a server makes it slow.
const { url, version } = await server()

/** 29 delays from 100 ms to 30 s, evenly spread on a logarithmic scale. */
const mixed = Array.from({ length: 29 }, (_, index) => Math.round(100 * 300 ** (index / 28)))

const count = 2000

/** Milliseconds by which all but one of a hundred may be late. */
const bound = 150

const { resolution } = Result.getOrThrow(RabbitMqOptions.decode({}))

/** Queues that a delay goes through: one, or one for each of its binary digits that is set. */
const hopsOf = {
  ladder: () => 1,
  levels: (delay: number) =>
    Math.ceil(delay / resolution)
      .toString(2)
      .replaceAll("0", "").length
}

/** How late retries come, in milliseconds from when the handler asked for them, before anything is settled. */
const punctual = (
  context: TestContext,
  topology: keyof typeof hopsOf,
  delayOf: (index: number) => number
): Promise<void> =>
  measure(context, { url, topology }, (broker, control) =>
    Effect.gen(function* () {
      const queue = queueName(topology)
      const asked = new Map<string, { readonly from: number; readonly delay: number }>()
      const came: Array<Control.Arrival> = []
      const retry = RetryPolicy.make({ maxRetries: mixed.length, backoff: Backoff.sequence(mixed) })
      yield* Consumer.start<string>(queue, { retry, concurrency: 100 }, (message) => {
        const { id } = message
        const before = asked.get(id)
        if (before !== undefined) {
          const [{ delay, from }, at] = [before, now()]
          const hops = hopsOf[topology](delay)
          return void came.push({ what: `${id} after ${delay} ms`, late: at - from - delay, bound, from, at, hops })
        }
        const delay = delayOf(Number(id.slice(1)))
        asked.set(id, { delay, from: now() })
        return message.retry({ delay })
      })
      // In four seconds: the test measures delays, and not how fast all of them can be asked for at once.
      for (let from = 0; from < count; from += count / 80) {
        yield* publishAll(broker, queue, ids(count).slice(Math.floor(from), Math.floor(from + count / 80)))
        yield* Effect.sleep(50)
      }
      yield* until(
        () => `${count} messages again, ${came.length} came`,
        () => came.length === count,
        120_000
      )
      const late = came.map(({ late }) => late).toSorted((a, b) => a - b)
      const part = (share: number) => Math.round(late[Math.min(count - 1, Math.floor(share * count))]!)
      console.log(
        `${count} delays through ${topology} on ${version}, late in milliseconds: ` +
          `first ${part(0)}, median ${part(0.5)}, p99 ${part(0.99)}, last ${part(1)}`
      )
      yield* Control.check(control, came, 0.01)
    })
  )

describe.concurrent(`${count} delays of 100 ms to 30 s: none early, p99 late by at most its bound`, () => {
  test("through the ladder", (context) => punctual(context, "ladder", (index) => mixed[index % mixed.length]!))
  test("through the levels", (context) => punctual(context, "levels", (index) => 100 + ((index * 7919) % 29_900)))
})

describe("per-message TTL", () => {
  const retry = RetryPolicy.make({ backoff: Backoff.constant(100) })

  test("blocks at the head of its queue, and check says so beforehand", async () => {
    const queue = queueName("head")
    const runs: Array<Run> = []
    await on({ url, topology: "perMessageTtl" }, (broker) =>
      Effect.gen(function* () {
        const [finding] = Feasibility.check({ retry, onLimit: "fail" }, broker.capabilities)
        assert.strictEqual(finding?.support._tag, "Emulated")
        assert.match(JSON.stringify(finding), /waits behind longer ones/)
        yield* consume(queue, runs, {})
        const sent = now()
        yield* broker.publish([outgoing(queue, "long", { delay: 2000 }), outgoing(queue, "short", { delay: 200 })])
        yield* until("both", () => runs.length === 2)
        const short = runs.find(({ id }) => id === "short")
        assert.isAtLeast(short!.at - sent, 1900)
      })
    )
  })
})
