/** What is between us and nsqd: compression, TLS, several nsqd. */
import { certificate } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, test } from "vitest"
import type { NsqOptions } from "../src/index.ts"
import { channels, held } from "./raw.ts"
import { server } from "./server.ts"
import { consume, ids, on, outgoing, publishAll, queueName, until, type Run } from "./world.ts"

/** Publishes small and large messages, and has them consumed. */
const roundTrip = async (
  options: NsqOptions.Options,
  queue = queueName("transport")
): Promise<ReadonlyArray<string>> => {
  const runs: Array<Run> = []
  await on(options, (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { concurrency: 10 })
      yield* publishAll(broker, queue, ids(50))
      const large = outgoing(queue, "large")
      yield* broker.publish([{ ...large, body: new TextEncoder().encode(JSON.stringify("x".repeat(500_000))) }])
      yield* until("all of them", () => runs.length === 51)
    })
  )
  return runs.map(({ id }) => id).toSorted()
}

const all = [...ids(50), "large"].toSorted()

const plain = await server()

test.each(["deflate", "snappy"] as const)("%s carries messages of any size", async (compression) => {
  assert.deepStrictEqual(await roundTrip({ ...plain.direct, compression }), all)
})

const folder = mkdtempSync(join(tmpdir(), "requeue-nsq-"))
afterAll(() => rmSync(folder, { recursive: true }))
const file = (name: string, pem: string): string => {
  writeFileSync(join(folder, name), pem)
  return join(folder, name)
}

describe("TLS", async () => {
  const { cert: ca, key } = certificate("nsqd.test")
  const flags = { "tls-cert": file("cert.pem", ca), "tls-key": file("key.pem", key), "tls-required": "tcp-https" }
  const { direct } = await server({ flags })

  test.each(["none", "deflate", "snappy"] as const)("with compression %s", async (compression) => {
    const tls = { ca, servername: "nsqd.test" }
    assert.deepStrictEqual(await roundTrip({ ...direct, tls, compression }), all)
  })

  test.each<[string, NsqOptions.Options, RegExp]>([
    ["an authority that nobody knows", { tls: true }, /ConnectionFailed.*certificate/],
    ["another name", { tls: { ca, servername: "other.test" } }, /ConnectionFailed.*altnames/],
    ["no TLS where it is required", {}, /TLS required/]
  ])("refuses %s", async (_, options, message) => {
    const error = await Effect.runPromise(
      Effect.flip(Effect.tryPromise({ try: () => roundTrip({ ...direct, ...options }), catch: (cause) => cause }))
    )
    assert.match(String(error), message)
  })
})

describe("two nsqd", async () => {
  const two = await server({ nodes: 2 })

  test("get one message each to keep, and it runs once", async () => {
    const queue = queueName("twice")
    const runs: Array<Run> = []
    await on({ ...two.direct, publishTo: 2 }, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ids(20))
        // A message on its way from its topic to its channel is in neither count.
        yield* until("one of each on both", async () => {
          const kept = await Promise.all(two.http.map((http) => held([http], queue)))
          return kept.every((count) => count === 20)
        })
        // One after the other: twins that run at the same time are both run.
        yield* consume(queue, runs)
        yield* until("the end of all", () => new Set(runs.map(({ id }) => id)).size === 20)
        yield* until("an empty queue", async () => (await held(two.http, queue)) === 0)
      })
    )
    assert.isBelow(runs.length, 40)
  })

  test("are not published to by one who has the first, unless that is gone", async () => {
    const queue = queueName("first")
    await on(two.wired, (broker) =>
      Effect.gen(function* () {
        const on = () => Effect.promise(() => Promise.all(two.http.map((http) => held([http], queue))))
        yield* publishAll(broker, queue, ids(5))
        assert.deepStrictEqual(yield* on(), [5, 0])
        two.wires[0].refuse(true)
        two.wires[0].cut()
        yield* publishAll(broker, queue, ids(5))
        two.wires[0].refuse(false)
        assert.deepStrictEqual(yield* on(), [5, 5])
        assert.lengthOf(yield* Effect.promise(() => channels(two.http, queue)), 2)
      })
    )
  })
})
