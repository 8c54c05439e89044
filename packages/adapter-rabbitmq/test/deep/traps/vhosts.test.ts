/** Limits of a virtual host, and its default type of queues. */
import { Backoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { get, put } from "../../real/adoptedBooks.ts"
import { shared } from "../../real/server.ts"
import { on, outgoing, queueName, reasonOf, until } from "../../world.ts"
import { consume, no, raw, type Run } from "./trap.ts"

const {
  broker: { managementUrl },
  url
} = await shared()

/** Makes a virtual host; answers the address of the server there. */
const make = async (vhost: string, settings: Readonly<Record<string, unknown>> = {}): Promise<string> => {
  const own = new URL(url)
  own.pathname = `/${vhost}`
  await put(managementUrl!, `vhosts/${vhost}`, settings)
  await put(managementUrl!, `permissions/${vhost}/${own.username}`, { configure: ".*", write: ".*", read: ".*" })
  return own.href
}

test.runIf(managementUrl)("a limit of queues that is reached is told with the remedy that helps", async () => {
  const vhost = queueName("small")
  const limit = (value: number) => put(managementUrl!, `vhost-limits/${vhost}/max-queues`, { value })
  const own = await make(vhost)
  // The queue, its letters and the undelivered.
  await limit(3)
  await on({ url: own }, (broker) =>
    Effect.gen(function* () {
      yield* consume("full", [], {})
      const send = broker.publish([outgoing("another", "a")])
      const error = yield* Effect.flip(send)
      assert.strictEqual(reasonOf(error), "AccessRefused")
      assert.match(String(error), /queue limit in .* is reached\. Raise that limit, such as max-queues/)
      yield* Effect.promise(() => limit(4))
      yield* until("room", () => Effect.runPromise(Effect.isSuccess(send)))
    })
  )
})

test.runIf(managementUrl)(
  "a classic queue is classic where the default is quorum, and what that has made is used as it is",
  { timeout: 120_000 },
  async (context) => {
    const [vhost, former, queue] = [queueName("default"), queueName("former"), queueName("new")]
    const own = await make(vhost, { default_queue_type: "quorum" })
    const told = (await get(managementUrl!, `vhosts/${vhost}`)) as { readonly default_queue_type?: string } // As RabbitMQ documents it.
    if (told.default_queue_type !== "quorum") return context.skip("this server has no default type of queues")
    const typeOf = async (name: string) =>
      ((await get(managementUrl!, `queues/${vhost}/${name}`)) as { readonly type?: string }).type // As RabbitMQ documents it.
    // As they were declared before their type was written.
    await raw(own, async (channel) => {
      for (const name of [former, `${former}.dlq`])
        await channel.assertQueue(name, {
          arguments: { "x-dead-letter-exchange": "requeue.v1.dead", "x-dead-letter-routing-key": name }
        })
      await channel.assertQueue("requeue.v1.c.undelivered")
      await channel.assertQueue("requeue.v1.c.delay.400", {
        arguments: { "x-message-ttl": 400, "x-dead-letter-exchange": "requeue.v1.deliver" }
      })
    })
    const runs: Array<Run> = []
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(400) })
    await on({ url: own, queueType: "classic" }, (broker) =>
      Effect.gen(function* () {
        for (const name of [former, queue]) {
          yield* consume(name, runs, { retry }, no)
          yield* broker.publish([outgoing(name, name)])
        }
        yield* until("both retries", () => runs.length === 4)
      })
    )
    assert.deepStrictEqual(
      [await typeOf(former), await typeOf("requeue.v1.c.delay.400"), await typeOf(queue), await typeOf(`${queue}.dlq`)],
      ["quorum", "quorum", "classic", "classic"]
    )
  }
)
