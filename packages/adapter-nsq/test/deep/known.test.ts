/** Which nsqd are known, and what is said where that cannot be known: nsqlookupd restarts, is away, or answers nonsense. */
import { certificate, start } from "@requeue/brokers"
import { Broker, BrokerError, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { once } from "node:events"
import { createServer, type RequestListener, type ServerResponse } from "node:http"
import { createServer as createSecure } from "node:https"
import type { AddressInfo } from "node:net"
import { inspect } from "node:util"
import { afterAll, assert, beforeEach, describe, test } from "vitest"
import { NsqBroker, NsqOperator, type NsqOptions } from "../../src/index.ts"
import { channels, register } from "../real/raw.ts"
import { consume, ids, no, on, outgoing, queueName, until, type Run } from "../world.ts"

const own = await start("nsq", { nodes: 3 })
const lookupd = own.lookupd!
const lookupHost = new URL(lookupd.url).host
const http = own.nodes.map(({ port }) => `127.0.0.1:${port + 1}`)
const at = (index: number) => `127.0.0.1:${own.nodes[index]!.port}`
afterAll(() => own.dispose())

/** Until what was sent is in a channel: on its way there, it is in no count. */
const isThere = (queue: string) =>
  until("it to be in its channel", async () =>
    (await channels(http, queue)).some(({ ready, untaken }) => ready - untaken === 1)
  )

/** An HTTP server that ends with the file, and its `host:port`. */
const serve = async (
  answer: RequestListener,
  tls?: { readonly cert: string; readonly key: string }
): Promise<string> => {
  const server = tls === undefined ? createServer(answer) : createSecure(tls, answer)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Answers for ever; the number of bytes is written down. */
const endless = (response: ServerResponse, written: { bytes: number }): void => {
  const chunk = Buffer.alloc(64 * 1024, " ")
  const more = (): void => {
    while (!response.destroyed) {
      written.bytes += chunk.length
      if (!response.write(chunk)) return void response.once("drain", more)
    }
  }
  response.on("error", () => {})
  more()
}

const logged: Array<string> = []
beforeEach(() => void logged.splice(0))
const logs = Layer.merge(
  Logger.layer([Logger.make((line) => void logged.push(inspect(line, { depth: 6 })))]),
  Layer.succeed(References.MinimumLogLevel, "Warn")
)

const onLogged = (
  options: NsqOptions.Options,
  program: (broker: Broker.Service) => Effect.Effect<void, unknown, Scope.Scope>
): Promise<void> =>
  Effect.runPromise(Effect.flatMap(NsqBroker.make(options), program).pipe(Effect.scoped, Effect.provide(logs)))

/** The error of a start. */
const failed = (options: NsqOptions.Options) =>
  Effect.runPromise(
    Effect.flip(Effect.scoped(NsqBroker.make(options))).pipe(
      Effect.provideService(References.MinimumLogLevel, "None"),
      Effect.filterOrFail((error) => error instanceof BrokerError.BrokerError)
    )
  )

describe("while nsqlookupd", () => {
  const found = { lookupd: [lookupHost], requestTimeout: 3000 }
  beforeEach(async () => {
    await lookupd.start()
    await register(http, lookupHost)
  })

  describe.each<[string, () => Promise<void>, ReadonlyArray<RegExp>]>([
    ["is away", () => lookupd.kill(), [new RegExp(`nsqlookupd does not answer: .*${lookupHost}.*ECONNREFUSED`)]],
    ["knows nobody, since it has restarted", () => lookupd.kill().then(() => lookupd.start()), []]
  ])("%s,", (_, breakIt, missing) => {
    const told = (all: ReadonlyArray<BrokerError.BrokerError>) => {
      assert.lengthOf(all, missing.length)
      for (const [index, text] of missing.entries()) assert.match(all[index]!.message, text)
    }

    test("counts, browsers, redrives and purges reach every nsqd that a process is connected to", () =>
      on({ ...found, publishOver: "all", lookupdInterval: 500 }, (broker) =>
        Effect.gen(function* () {
          const queue = queueName("letters")
          const runs: Array<Run> = []
          yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 0 }), concurrency: 10 }, no)
          for (const id of ids(30)) yield* broker.publish([outgoing(queue, id)])
          const dead = yield* DeadLetters.make(`${queue}.dlq`)
          const letters = async () => (await Effect.runPromise(broker.admin.counts(`${queue}.dlq`))).ready
          yield* until("the dead letters", async () => (await letters()) === 30)
          // Another process, which has published nothing, and consumes nothing.
          const idle = yield* NsqBroker.make(found)
          yield* Effect.promise(breakIt)
          for (const each of [broker, idle]) {
            const { missing = [], ready } = yield* each.admin.counts(`${queue}.dlq`)
            assert.strictEqual(ready, 30)
            told(missing)
          }
          assert.lengthOf(yield* dead.list(), 30)
          assert.strictEqual((yield* dead.group())[0]?.count, 30)
          assert.strictEqual((yield* dead.redrive({ limit: 10 })).redriven, 10)
          yield* until("those that come back", async () => (await letters()) === 30)
          assert.strictEqual(yield* dead.purge({ all: true }), 30)
          told(yield* dead.missing)
        })
      ))
  })

  test("has restarted, a process without a connection says that nobody is known", async () => {
    const queue = queueName("unknown")
    await lookupd.kill()
    await lookupd.start()
    const questions: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
      NsqOperator.pause(queue, found),
      NsqOperator.verify(queue, found)
    ]
    for (const question of questions) {
      const error = await Effect.runPromise(Effect.flip(question))
      assert.match(String(error), new RegExp(`no nsqd is registered with http://${lookupHost}`))
    }
    assert.match((await failed(found)).message, new RegExp(`no nsqd is registered with http://${lookupHost}`))
  })

  test("is away, an nsqd that is given is asked, and the rest is said to be unknown", async () => {
    const queue = queueName("given")
    await on({ nsqd: [at(0)] }, (broker) => broker.publish([outgoing(queue, "m")]))
    await on({ nsqd: [at(0)], lookupd: ["127.0.0.1:1"] }, ({ admin }) =>
      Effect.gen(function* () {
        yield* isThere(queue)
        const { missing = [], ready } = yield* admin.counts(queue)
        assert.strictEqual(ready, 1)
        assert.match(missing.join(), /nsqlookupd does not answer: .*127\.0\.0\.1:1/)
      })
    )
    const findings = await Effect.runPromise(
      Effect.provide(NsqOperator.verify(queue, { nsqd: [at(0)], lookupd: ["127.0.0.1:1"] }), logs)
    )
    assert.match(findings.map(({ detail }) => detail).join(), /nsqlookupd does not answer/)
  })
})

describe("a start says why nobody is known where nsqlookupd", () => {
  test.each<[string, RequestListener, RegExp]>([
    ["answers garbage", (_, response) => void response.end("<html>"), /Unexpected token/],
    ["answers nothing", (_, response) => void response.end(), /not from NSQ: undefined/],
    ["answers null", (_, response) => void response.end("null"), /not from NSQ: null/],
    ["answers a list", (_, response) => void response.end("[]"), /not from NSQ: \[\]/],
    ["names no list", (_, response) => void response.end('{"producers":null}'), /not from NSQ: \{"producers":null\}/],
    ["fails", (_, response) => void response.writeHead(500).end("oops"), /HTTP status 500/],
    ["hangs", () => {}, /no answer within 1s/]
  ])("%s", async (_, answer, because) => {
    const host = await serve(answer)
    const { message, remedy } = await failed({ lookupd: [host], requestTimeout: 1000 })
    assert.match(message, new RegExp(`nsqlookupd does not answer: http://${host}: `))
    assert.match(message, because)
    assert.match(remedy ?? "", /lookupd/)
  })

  test("has a certificate of another authority", async () => {
    const host = await serve((_, response) => void response.end('{"producers":[]}'), certificate("127.0.0.1"))
    const options = { lookupd: [`https://${host}`], httpTls: { ca: certificate("127.0.0.1").cert } }
    const { message } = await failed(options)
    assert.match(message, new RegExp(`nsqlookupd does not answer: https://${host}: .*certificate.*httpTls`))
  })
})

describe("an nsqlookupd that answers too much", () => {
  test("is read to 8 MiB", async () => {
    const written = { bytes: 0 }
    const host = await serve((_, response) => endless(response, written))
    const { message } = await failed({ lookupd: [host], requestTimeout: 5000 })
    assert.match(message, /more than 8 MiB/)
    // What has left it may still be on its way.
    assert.isBelow(written.bytes, 24 * 1024 * 1024)
  })

  test("has 1,000 of its nsqd taken, the same ones each time, and that is logged once", async () => {
    const resolved = new Set<string>()
    let asked = 0
    const host = await serve((_, response) => {
      asked++
      const producers = Array.from({ length: 20_000 }, (_, index) => ({
        broadcast_address: `n${(index * 7919 + asked) % 20_000}`,
        tcp_port: 4150,
        http_port: 4151
      }))
      response.end(JSON.stringify({ producers }))
    })
    const resolveAddress = (named: NsqOptions.Discovered) => {
      resolved.add(named.host)
      return named.host === "n0"
        ? { host: "127.0.0.1", port: own.nodes[0]!.port, httpPort: own.nodes[0]!.port + 1 }
        : undefined
    }
    await onLogged({ lookupd: [host], lookupdInterval: 100, resolveAddress }, () => until("questions", () => asked > 5))
    assert.strictEqual(resolved.size, 1000)
    assert.lengthOf(
      logged.filter((line) => /20000 nsqd.*all but 1000/.test(line)),
      1
    )
  })
})

describe("an nsqd whose HTTP interface answers nonsense", () => {
  const topic = { topic_name: "t", depth: 0, channels: [] }
  const channel = { channel_name: "requeue", depth: 1, in_flight_count: 0, deferred_count: 0 }
  const statistics = (...topics: ReadonlyArray<unknown>) => JSON.stringify({ version: "1.3.0", topics })

  test.each([
    "null",
    "[]",
    "{}",
    '{"topics":null}',
    '{"version":"1.3.0","topics":"all"}',
    statistics(null),
    statistics({ ...topic, depth: -3 }),
    statistics({ ...topic, channels: null }),
    statistics({ ...topic, channels: [{ ...channel, in_flight_count: -10 }] }),
    statistics({ ...topic, channels: [{ ...channel, depth: "x" }] }),
    statistics({ ...topic, channels: [null] })
  ])("is missing, with its answer: %s", async (answer) => {
    const liar = await serve((request, response) => {
      if (request.url!.startsWith("/stats")) return void response.end(answer)
      void fetch(`http://${http[1]}${request.url}`, { method: request.method! }).then(async (real) =>
        response.writeHead(real.status).end(await real.text())
      )
    })
    const queue = queueName("lied")
    await on({ nsqd: [at(0), at(1)], nsqdHttp: [http[0]!, liar] }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "m")])
        yield* isThere(queue)
        const { missing = [], ...counts } = yield* broker.admin.counts(queue)
        assert.deepStrictEqual(counts, { ready: 1, inFlight: 0, delayed: 0 })
        assert.lengthOf(missing, 1)
        assert.include(missing[0]!.message, at(1))
        assert.include(missing[0]!.message, `not from NSQ: ${answer}`)
      })
    )
  })
})
