/** What is between us and nsqd: compression, TLS, several nsqd. */
import { certificate } from "@requeue/brokers"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, test } from "vitest"
import { NsqBroker, type NsqOptions } from "../../src/index.ts"
import { channels, held } from "../real/raw.ts"
import { server } from "./server.ts"
import { consume, ids, on, outgoing, publishAll, queueName, until, type Run } from "../world.ts"

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

describe("TLS of an address", async () => {
  const [own, other] = [certificate("127.0.0.1"), certificate("localhost")]
  const startWith = ({ cert, key }: typeof own, name: string) =>
    server({ flags: { "tls-cert": file(`${name}.pem`, cert), "tls-key": file(`${name}.key`, key) } })
  const [right, wrong] = [await startWith(own, "own"), await startWith(other, "other")]

  test("is taken for that address", async () => {
    assert.deepStrictEqual(await roundTrip({ ...right.direct, tls: { ca: own.cert } }), all)
  })

  test("and connect does not wait for another one", async () => {
    const error = await connect(NsqBroker.layer({ ...right.direct, tls: { ca: other.cert } })).catch(String)
    assert.match(String(error), /ConnectionFailed/)
    assert.notMatch(String(error), /attempts? in/)
  })

  test("and not for localhost", async () => {
    const error = await roundTrip({ ...wrong.direct, tls: { ca: other.cert } }).catch(String)
    assert.match(String(error), /ConnectionFailed.*altnames/)
  })
})

describe("HTTP interfaces", async () => {
  const { cert: ca, key } = certificate("nsqd.test")
  const pems = { "tls-cert": file("http-cert.pem", ca), "tls-key": file("http-key.pem", key) }
  const { broker, direct, found } = await server({ flags: { ...pems, "tls-required": "true" } })
  const tls = { ca, servername: "nsqd.test" }

  const countsWith = (options: NsqOptions.Options) =>
    on(options, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("counted")
        yield* publishAll(broker, queue, ids(3))
        yield* until("three", () =>
          Effect.runPromise(Effect.map(broker.admin.counts(queue), ({ ready }) => ready === 3))
        )
      })
    )

  test.each([
    ["address", direct],
    ["nsqlookupd", found]
  ])(
    "of an nsqd that needs TLS, with an authority of its own, count and make what is found by %s",
    async (_, options) => {
      await countsWith({ ...options, tls })
    }
  )

  test("are refused when their certificate is not trusted, with where to name the authority", async () => {
    const error = await countsWith({ ...direct, tls, httpTls: { servername: "nsqd.test" } }).catch(String)
    assert.match(String(error), /certificate.*httpTls/)
  })

  test("of nsqlookupd may be behind TLS, with an authority of its own", async () => {
    const authority = certificate("lookupd.test")
    const between = createServer({ key: authority.key, cert: authority.cert }, (request, response) => {
      void fetch(new URL(request.url ?? "/", broker.managementUrl))
        .then(async (answer) => response.writeHead(answer.status).end(await answer.text()))
        .catch(() => response.destroy())
    })
    await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve))
    const lookupd = [`https://127.0.0.1:${(between.address() as AddressInfo).port}`]
    const trusted = { ca: [ca, authority.cert], servername: "lookupd.test" }
    await on({ lookupd, tls, httpTls: trusted, http: false }, (broker) => publishAll(broker, queueName("found"), ["m"]))
    const error = await on({ lookupd, tls, http: false }, () => Effect.void).catch(String)
    assert.match(String(error), /no nsqd/)
    between.close()
  })
})

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
        // A message on its way from its topic to its channel is in neither count.
        const kept = (first: number, second: number) =>
          until(`${first} and ${second}`, async () => {
            const counts = await Promise.all(two.http.map((http) => held([http], queue)))
            return counts[0] === first && counts[1] === second
          })
        yield* publishAll(broker, queue, ids(5))
        yield* kept(5, 0)
        two.wires[0].refuse(true)
        two.wires[0].cut()
        yield* publishAll(broker, queue, ids(5))
        two.wires[0].refuse(false)
        yield* kept(5, 5)
        assert.lengthOf(yield* Effect.promise(() => channels(two.http, queue)), 2)
      })
    )
  })
})
