/** Every name that NSQ takes for a channel is that channel, on a real nsqd. */
import { Producer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { NsqNative } from "../../src/index.ts"
import { channels } from "../real/raw.ts"
import { server } from "./server.ts"
import { consume, no, on, queueName, until, type Run } from "../world.ts"

const one = await server()
const retry = RetryPolicy.make({ maxRetries: 0 })

test.each([
  ["in a queue's name", (topic: string) => `${topic}/billing.v2`, {}],
  ["of queues that name none", (topic: string) => topic, { channel: "billing.v2" }]
])("a channel with dots, %s, is consumed, and no other topic", async (_, queueOf, options) => {
  const topic = queueName("dots")
  const queue = queueOf(topic)
  const runs: Array<Run> = []
  const native: Array<NsqNative.NsqNative | undefined> = []
  await on({ ...one.direct, ...options }, () =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { retry }, (message) => {
        native.push(NsqNative.of(message))
        return no()
      })
      const producer = yield* Producer.make(queue)
      yield* producer.send("m")
      yield* until("a run", () => runs.length === 1)
      yield* consume(`${queue}.dlq`, runs)
      yield* until("its dead letter", () => runs.length === 2)
    })
  )
  assert.deepInclude(native[0], { topic, channel: "billing.v2" })
  const found = (await channels(one.http, topic)).map((each) => `${each.topic}/${each.name}`)
  const own = found.filter((name) => name !== `${topic}/billing.v2`)
  // The consumer of the dead letters has a retry topic as well, which is made when it starts.
  for (const name of own) assert.match(name, new RegExp(`^${topic}\\.billing\\.v2\\.[0-9a-z]{13}\\.(retry|dlq)`))
  assert.include(found, `${topic}/billing.v2`)
})
