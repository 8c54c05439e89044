/** The objects that a consumer makes on a server where nothing is: none for delays that nobody asks for. */
import { Backoff, Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import type { RabbitMqOptions } from "../../src/index.ts"
import { get } from "../real/adoptedBooks.ts"
import { server } from "../real/server.ts"
import { on, outgoing, queueName, until } from "../world.ts"

const { broker, url } = await server()
const management = broker.managementUrl

/** The quorum queues, exchanges and bindings whose names have the prefix or the queue's name. */
const countOf = async (prefix: string, queue: string): Promise<ReadonlyArray<number>> => {
  const isOurs = (name: unknown) => String(name).startsWith(prefix) || String(name).startsWith(queue)
  const list = async (kind: string) => (await get(management!, `${kind}/%2F`)) as ReadonlyArray<Record<string, unknown>> // As RabbitMQ documents it.
  const named = (all: ReadonlyArray<Record<string, unknown>>) => all.filter(({ name }) => isOurs(name)).length
  const bindings = (await list("bindings")).filter(({ destination, source }) => source !== "" && isOurs(destination))
  return [named(await list("queues")), named(await list("exchanges")), bindings.length]
}

const policies: ReadonlyArray<
  readonly [string, RetryPolicy.RetryPolicy, RabbitMqOptions.Options, ReadonlyArray<number>]
> = [
  ["no delay", RetryPolicy.make(), {}, [3, 3, 4]],
  ["one delay", RetryPolicy.make({ backoff: Backoff.constant("30 seconds") }), {}, [4, 4, 5]],
  [
    "three delays",
    RetryPolicy.make({ maxRetries: 5, backoff: Backoff.sequence(["5 seconds", "1 minute", "10 minutes"]) }),
    {},
    [6, 6, 7]
  ],
  [
    "ten delays that double",
    RetryPolicy.make({ maxRetries: 10, backoff: Backoff.exponential("1 second", { max: "1 hour" }) }),
    {},
    [13, 13, 14]
  ],
  [
    "five random delays that double, by full jitter",
    RetryPolicy.make({ maxRetries: 5, backoff: Backoff.exponential("1 second", { max: "1 hour", jitter: "full" }) }),
    {},
    [12, 12, 13]
  ],
  ["random delays up to 11 hours", RetryPolicy.webhookSender, {}, [13, 24, 14]]
]

describe.runIf(management !== undefined)("a connection makes", () => {
  test.each(policies)("with %s, these queues, exchanges and bindings", async (_, retry, options, wanted) => {
    const [queue, prefix] = [queueName("footprint"), queueName("p").slice(0, 20)]
    await on({ url, prefix, ...options }, () => Consumer.start(queue, { retry }, () => {}))
    assert.deepStrictEqual(await countOf(prefix, queue), [...wanted])
  })

  test("nothing while it only counts and browses", async () => {
    const [queue, prefix] = [queueName("read"), queueName("p").slice(0, 20)]
    await on({ url, prefix }, ({ admin }) =>
      Effect.gen(function* () {
        assert.deepInclude(yield* admin.counts(queue), { ready: 0, isMissing: true })
        yield* Effect.ignore(admin.browse({ queue, from: "ready", limit: 1 }))
      })
    )
    assert.deepStrictEqual(await countOf(prefix, queue), [0, 0, 0])
  })

  test.each(["a handler", "a producer"])("what keeps delays when %s asks for the first one", async (who) => {
    const [queue, prefix] = [queueName("asked"), queueName("p").slice(0, 20)]
    const attempts: Array<number> = []
    await on({ url, prefix }, (broker) =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, { retry: RetryPolicy.make() }, (message) => {
          attempts.push(message.attempts)
          if (who === "a handler" && message.attempts === 1) message.retry({ delay: 100 })
        })
        assert.deepStrictEqual(yield* Effect.promise(() => countOf(prefix, queue)), [3, 3, 4])
        yield* broker.publish([outgoing(queue, "a", who === "a handler" ? {} : { delay: 100 })])
        const runs = who === "a handler" ? 2 : 1
        yield* until(`${runs} runs`, () => attempts.length === runs)
      })
    )
    // Two digits of 50 ms.
    assert.deepStrictEqual(await countOf(prefix, queue), [5, 5, 6])
  })
})
