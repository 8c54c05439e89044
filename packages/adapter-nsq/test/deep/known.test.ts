/** What nsqlookupd answers over the network: certificates, and answers that are too large. Simulated servers show the rest. */
import { certificate, start } from "@requeue/brokers"
import { Broker, BrokerError } from "@requeue/core"
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
import { NsqBroker, type NsqOptions } from "../../src/index.ts"
import { until } from "../world.ts"

const own = await start("nsq")
afterAll(() => own.dispose())

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

test("a start says that the certificate of nsqlookupd has another authority", async () => {
  const host = await serve((_, response) => void response.end('{"producers":[]}'), certificate("127.0.0.1"))
  const options = { lookupd: [`https://${host}`], httpTls: { ca: certificate("127.0.0.1").cert } }
  const { message } = await failed(options)
  assert.match(message, new RegExp(`nsqlookupd does not answer: https://${host}: .*certificate.*httpTls`))
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
