/** What is wrong is said, with what to do about it and without the secret; and no other message suffers from it. */
import { BrokerError, ConfigurationError, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { createServer as createHttp } from "node:http"
import { createServer, type AddressInfo } from "node:net"
import { inspect } from "node:util"
import { afterAll, afterEach, assert, describe, test } from "vitest"
import { NsqBroker, type NsqOptions } from "../../src/index.ts"
import { server } from "./server.ts"
import { bytes, consume, ids, on, outgoing, publishAll, queueName, until, type Run, now } from "../world.ts"

const secret = "hunter2"

const logged: Array<string> = []
const logs = Logger.layer([Logger.make((line) => void logged.push(inspect(line, { depth: 6 })))])

const insistOnSecrecy = (what: unknown) => assert.notInclude(inspect(what, { depth: 9, showHidden: true }), secret)

afterEach(() => insistOnSecrecy(logged.splice(0)))

/** Decides for nsqd who may do what. https://nsq.io/components/nsqd.html#auth */
const authority = createHttp((request, response) => {
  const given = new URL(request.url ?? "/", "http://host").searchParams.get("secret")
  if (given !== secret && given !== "limited") return void response.writeHead(403).end("{}")
  const permissions = given === secret ? ["subscribe", "publish"] : ["publish"]
  const authorizations = [{ topic: ".*", channels: [".*"], permissions }]
  response.end(JSON.stringify({ ttl: 3600, identity: "test", authorizations }))
})
await new Promise<void>((resolve) => authority.listen(0, "127.0.0.1", resolve))
afterAll(() => authority.close())
const { port: authorityPort } = authority.address() as AddressInfo

const largest = 16_384
const open = await server({ flags: { "max-msg-size": largest, "max-req-timeout": "2s" } })
const guarded = await server({ flags: { "auth-http-address": `127.0.0.1:${authorityPort}` } })
const [wire] = open.wires

/** A start, as a consumer has it: the broker and one subscription. */
const start = (options: NsqOptions.Options, queue: string) =>
  Effect.flatMap(NsqBroker.make(options), (service) =>
    service.subscribe({
      queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [`${queue}.dlq`],
      onDelivery: () => {},
      onReconnect: () => {}
    })
  )

/** What an error of either kind may say. */
interface Refused {
  readonly _tag: string
  readonly message: string
  readonly reason: string
  readonly operation: string
  readonly detail: string
  readonly remedy: string
}

const refusalOf = async (program: Effect.Effect<unknown, unknown>): Promise<Refused> => {
  const error = await Effect.runPromise(Effect.flip(program).pipe(Effect.provide(logs)))
  assert.isTrue(
    error instanceof BrokerError.BrokerError || error instanceof ConfigurationError.ConfigurationError,
    inspect(error)
  )
  insistOnSecrecy([error, (error as Error).message, (error as Error).stack, JSON.stringify(error)])
  const refused = error as Refused
  assert.isNotEmpty(refused.remedy)
  return refused
}

const fail = (options: NsqOptions.Options, queue = queueName("bad")) => refusalOf(Effect.scoped(start(options, queue)))

describe("a start with", () => {
  test.each<[string, string, RegExp]>([
    ["no URL", "nsq hunter2", /url.*it is not a valid URL.*nsq:\/\//],
    ["another scheme", "amqp://:hunter2@host", /scheme amqp: is not nsq:/],
    ["a user name", "nsq://hunter2:x@host", /user name/],
    ["a queue in it", "nsq://:hunter2@host/orders", /path/],
    ["an unknown parameter", "nsq://:hunter2@host?prefetch=5", /has a parameter that is not an option.*Use one of/],
    ["a parameter out of its range", "nsq://:hunter2@host?heartbeat=5", /heartbeat/]
  ])("%s in its URL", async (_, url, message) => {
    const error = await fail({ url })
    assert.strictEqual(error._tag, "ConfigurationError")
    assert.match(error.message, message)
  })

  test("nobody listening", async () => {
    const error = await fail({ url: `nsq://:${secret}@127.0.0.1:1` })
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.message, /127\.0\.0\.1:1/)
  })

  test("a host that does not exist", async () => {
    const error = await fail({ url: `nsq://:${secret}@nowhere.invalid?authInClear=true` })
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.message, /nowhere\.invalid/)
  })

  test("no nsqlookupd listening", async () => {
    const error = await fail({ lookupd: ["127.0.0.1:1"] })
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.message, /127\.0\.0\.1:1/)
  })

  test("something that does not speak NSQ's protocol", async () => {
    const mute = createServer((socket) => socket.on("error", () => {}))
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve))
    const { port } = mute.address() as AddressInfo
    const error = await fail({ url: `nsq://127.0.0.1:${port}`, connectTimeout: 1000, requestTimeout: 1000 })
    assert.strictEqual(error.reason, "ConnectionFailed")
    mute.close()
    const http = await fail({ url: `nsq://${open.http[0]}` })
    assert.strictEqual(http.reason, "ConnectionFailed")
  })

  test.each(["wrong", undefined])("the secret %s where there must be another", async (authSecret) => {
    const error = await fail({ ...guarded.direct, ...(authSecret === undefined ? {} : { authSecret }) })
    assert.strictEqual(error.reason, "AccessRefused")
    assert.match(error.remedy, /authSecret/)
  })

  test("a secret that may publish only", async () => {
    const error = await fail({ ...guarded.direct, authSecret: "limited" })
    assert.strictEqual(error.reason, "AccessRefused")
  })

  test.each(["a b", "a/b/c", "x".repeat(65), "ü", ""])("the queue %o, whose name NSQ does not take", async (queue) => {
    const error = await fail(open.direct, queue)
    assert.match(error.message, /name|slash/)
  })
})

test("the right secret opens", async () => {
  const runs: Array<Run> = []
  const queue = queueName("guarded")
  await on({ ...guarded.direct, authSecret: secret }, (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, runs)
      yield* publishAll(broker, queue, ["m"])
      yield* until("a run", () => runs.length === 1)
    })
  )
})

describe("a publish that cannot be", () => {
  /** Publishes what is wrong among much that is not, on connections that all of them share. */
  const among = async (
    wrong: (queue: string) => Parameters<typeof outgoing>,
    edit = (it: ReturnType<typeof outgoing>) => it
  ) => {
    const queue = queueName("among")
    const runs: Array<Run> = []
    let refused: Refused | undefined
    await on(open.wired, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { concurrency: 10 })
        yield* publishAll(broker, queue, ["first"])
        yield* until("the first", () => runs.length === 1)
        const connections = wire.sent("IDENTIFY").length
        const good = ids(100)
        yield* Effect.forEach(
          good,
          (id, index) => {
            const sent = broker.publish([outgoing(queue, id)])
            if (index !== 50) return sent
            const bad = refusalOf(broker.publish([edit(outgoing(...wrong(queue)))]))
            return Effect.andThen(
              sent,
              Effect.promise(async () => (refused = await bad))
            )
          },
          { concurrency: "unbounded", discard: true }
        )
        yield* until("the good ones", () => runs.length === 1 + good.length)
        assert.strictEqual(wire.sent("IDENTIFY").length, connections, "a connection was made again")
      })
    )
    return refused ?? assert.fail("it was not refused")
  }

  test("of a message that is too large for the server", async () => {
    const error = await among(
      (queue) => [queue, "large"],
      (it) => ({ ...it, body: bytes("x".repeat(largest + 1)) })
    )
    assert.strictEqual(error.reason, "BodyTooLarge")
    assert.match(error.message, /the limit is \d+\. .*--max-msg-size/)
  })

  test("to a topic whose name NSQ does not take", async () => {
    const error = await among(() => ["not a topic!", "m"])
    assert.match(error.message, /not a topic!/)
  })
})

test("delays that are fractions, or over the cap of nsqd, are kept, and close nothing", async () => {
  const queue = queueName("delays")
  const runs: Array<Run> = []
  await on(open.wired, (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { concurrency: 10 })
      const connections = wire.sent("IDENTIFY").length
      const delays = [0.4, 1500.5, 2000, 2000.001, 3000]
      const sent = now()
      yield* Effect.forEach(delays, (delay, index) => broker.publish([outgoing(queue, `m${index}`, { delay })]))
      yield* until("all of them", () => runs.length === delays.length)
      for (const { at, id } of runs) assert.isAtLeast(at - sent, delays[Number(id.slice(1))]!)
      assert.strictEqual(wire.sent("IDENTIFY").length, connections, "a connection was made again")
    })
  )
})
