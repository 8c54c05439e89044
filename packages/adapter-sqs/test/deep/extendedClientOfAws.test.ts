/** Large bodies between Requeue and AWS' own extended client for Python, each of which reads what the other sends. */
import { extendedClient, Unavailable } from "@requeue/brokers"
import { Codec, Consumer, Producer, QueueDefinition } from "@requeue/core"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, test } from "vitest"
import { ExtendedClient } from "../../src/s3.ts"
import { bucketAt } from "./s3.ts"
import { strict } from "./strict.ts"
import { on, queueName, until, urlOf } from "../real/world.ts"

/** It needs Python, and some megabytes from PyPI. */
const python = await extendedClient().catch((cause: unknown) => {
  if (!(cause instanceof Unavailable)) throw cause
})

describe.runIf(python !== undefined).each([false, true])("AWS' own extended client, legacy attribute: %s", (legacy) => {
  const times = 300_000
  const large = "ü".repeat(times)
  const script = fileURLToPath(new URL("extendedClient.py", import.meta.url))

  const world = (async () => {
    const server = await strict()
    const bucket = await bucketAt(server.endpoint, queueName("aws"))
    const codec = ExtendedClient.make(Codec.text, {
      client: bucket.client,
      bucket: bucket.name,
      legacyAttribute: legacy
    })
    const queue = QueueDefinition.make(queueName("aws"), { codec })
    const asked = { endpoint: server.endpoint, bucket: bucket.name, queue: queue.name, legacy, body: "ü", times }
    const theirs = async (call: "send" | "receive"): Promise<string> => {
      const args = [script, JSON.stringify({ ...asked, call })]
      return (await promisify(execFile)(python!, args, { maxBuffer: 8 * 1024 * 1024 })).stdout
    }
    return { ...server, queue, theirs }
  })()

  test("reads what Requeue sends", async () => {
    const { queue, theirs, url } = await world
    await on({ url }, () =>
      Effect.flatMap(Producer.make(queue), (producer) => producer.send(large, { headers: { tenant: "a" } }))
    )
    const { attributes, body } = JSON.parse(await theirs("receive"))
    assert.strictEqual(body, large)
    assert.strictEqual(attributes.tenant, "a")
  })

  test("sends what Requeue reads", async () => {
    const { behind, queue, theirs, url } = await world
    const seen: Array<unknown> = []
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, {}, ({ body, headers }) => void seen.push([body === large, headers]))
        yield* Effect.promise(() => urlOf(behind, queue.name))
        yield* Effect.promise(() => theirs("send"))
        yield* until("its run", () => seen.length === 1)
      })
    )
    assert.deepStrictEqual(seen, [[true, { tenant: "a" }]])
  })
})
