/** What is wrong is a typed error that says what to do, without secrets; what is right beside it is done. */
import { Broker, BrokerError, ConfigurationError, RetryPolicy } from "@requeue/core"
import { type Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { inspect } from "node:util"
import { afterEach, assert, describe, test } from "vitest"
import { toDelivery } from "../../src/internal/consume/toDelivery.ts"
import { SqsBroker, type SqsOptions } from "../../src/index.ts"
import { strict } from "./strict.ts"
import {
  bytes,
  consume,
  drain,
  ids,
  idOf,
  no,
  on,
  outgoing,
  queueName,
  until,
  untilEmpty,
  urlOf,
  type Run
} from "../real/world.ts"

const { behind, proxy, url } = await strict()
const secrets = ["hunter2", new URL(url).password]

const logged: Array<string> = []
const logs = Logger.layer([Logger.make((line) => void logged.push(inspect(line, { depth: 6 })))])

const insistOnSecrecy = (what: unknown) => {
  for (const secret of secrets) assert.notInclude(inspect(what, { depth: 9, showHidden: true }), secret)
}

afterEach(() => {
  proxy.clear()
  proxy.deny([])
  insistOnSecrecy(logged.splice(0))
})

/** A start, as a consumer has it: the broker and one subscription. */
const start = (options: SqsOptions.Options, queue: string) =>
  Effect.flatMap(SqsBroker.make({ waitTime: 1000, ...options }), (service) =>
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
  readonly message: string
  readonly reason: string
  readonly queue: string
  readonly remedy: string
}

const insist = (error: unknown): Refused => {
  assert.isTrue(
    error instanceof BrokerError.BrokerError || error instanceof ConfigurationError.ConfigurationError,
    inspect(error)
  )
  insistOnSecrecy([error, (error as Error).message, (error as Error).stack, JSON.stringify(error)])
  return error as Refused
}

const fail = async (options: SqsOptions.Options, queue = queueName("bad")) =>
  insist(await Effect.runPromise(Effect.flip(Effect.scoped(start(options, queue))).pipe(Effect.provide(logs))))

const change = (edit: (url: URL) => void): string => {
  const changed = new URL(url)
  edit(changed)
  return changed.href
}

/** An HTTP server that is no SQS. */
const stranger = async (answer: string | undefined) => {
  const server = createServer((_, response) => {
    if (answer !== undefined) response.writeHead(200, { "content-type": "text/html" }).end(answer)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}

describe("a start with", () => {
  test.each<[string, SqsOptions.Options]>([
    ["an access key that nobody has", { url: change((it) => (it.username = "nobody")) }],
    ["a wrong secret", { url, secretAccessKey: Redacted.make("hunter2"), accessKeyId: new URL(url).username }],
    ["the wrong region", { url: change((it) => it.searchParams.set("region", "us-east-1")) }]
  ])("%s", async (_, options) => {
    const error = await fail(options)
    assert.strictEqual(error.reason, "AccessRefused")
    assert.match(error.remedy, /access key and secret.*region/)
  })

  test.each(["GetQueueUrl", "GetQueueAttributes", "CreateQueue"])("no permission for %s", async (action) => {
    proxy.deny([action])
    const error = await fail({ url })
    assert.strictEqual(error.reason, "AccessRefused")
    assert.match(error.remedy, /IAM policy/)
  })

  test("nobody listening", async () => {
    const error = await fail({ url: change((it) => (it.host = "127.0.0.1:1")) })
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.remedy, /host and port/)
  })

  test("a host that does not exist", async () => {
    const error = await fail({ url: change((it) => (it.host = "nowhere.invalid:1")) })
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.message, /nowhere\.invalid/)
  })

  test("a server that is none of SQS's, or says nothing", async () => {
    using talks = await stranger("<html>hello</html>")
    const error = await fail({ url: change((it) => (it.host = talks.host)) })
    assert.match(error.message, /^sqs: /)
    using mute = await stranger(undefined)
    assert.strictEqual(
      (await fail({ url: change((it) => (it.host = mute.host)), requestTimeout: 1000 })).reason,
      "Timeout"
    )
  })
})

describe("a permission that is taken away while we run", () => {
  test("to receive: it is said once, and the consumer goes on when it is back", async () => {
    const queue = queueName("receive")
    const runs: Array<Run> = []
    const program = Effect.gen(function* () {
      const broker = yield* SqsBroker.make({ url, waitTime: 1000 })
      yield* Effect.provideService(consume(queue, runs), Broker.Broker, broker)
      proxy.deny(["ReceiveMessage"])
      yield* until("a warning", () => logged.some((line) => line.includes("AccessRefused")))
      yield* broker.publish([outgoing(queue, "a")])
      const polls = () => proxy.calls()["ReceiveMessage"] ?? 0
      const before = polls()
      yield* until("two polls more", () => polls() >= before + 2)
      assert.strictEqual(logged.filter((line) => line.includes("AccessRefused")).length, 1)
      proxy.deny([])
      yield* until("the message", () => runs.length === 1)
    })
    await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide(logs)))
  })

  test("to send", async () => {
    const queue = queueName("send")
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "a")])
        proxy.deny(["SendMessage"])
        const error = insist(yield* Effect.flip(broker.publish([outgoing(queue, "b")])))
        assert.deepStrictEqual([error.reason, error.queue], ["AccessRefused", queue])
      })
    )
  })
})

describe("one message that SQS does not take, among others of the same batch", () => {
  const withHeaders = (queue: string, id: string, headers: Record<string, string>) => outgoing(queue, id, { headers })
  test.each<[name: string, reason: string, bad: (queue: string) => Outgoing.Outgoing]>([
    [
      "a body over the limit",
      "BodyTooLarge",
      (queue) => ({ ...outgoing(queue, "bad"), body: bytes("x".repeat(1024 * 1024)) })
    ],
    [
      "bytes that are over it as text",
      "BodyTooLarge",
      (queue) => ({ ...outgoing(queue, "bad"), body: new Uint8Array(800 * 1024) })
    ],
    [
      "headers over the limit",
      "BodyTooLarge",
      (queue) => withHeaders(queue, "bad", { large: "x".repeat(1024 * 1024) })
    ],
    [
      "a group of a name that SQS refuses",
      "Unsupported",
      (queue) => withHeaders(queue, "bad", { "message-group-id": "a b" })
    ]
  ])("%s", async (_, reason, bad) => {
    const queue = queueName("among")
    const error = await on({ url }, (broker) =>
      Effect.flip(broker.publish([outgoing(queue, "a"), bad(queue), outgoing(queue, "b")]))
    )
    assert.strictEqual(insist(error).reason, reason)
    assert.match(insist(error).message, /\. (Store|Use) /)
    assert.deepStrictEqual((await drain(behind, queue)).map(idOf).toSorted(), ["a", "b"])
  })
})

describe("a foreign producer", () => {
  const ten = Object.fromEntries(ids(10).map((name) => [name, { DataType: "String", StringValue: `of ${name}` }]))

  test("that has used up the attributes: nothing of them is lost in a copy, nor in a dead letter", async () => {
    const queue = queueName("full")
    const seen: Array<unknown> = []
    await on({ url, inFlightLimit: 0 }, () =>
      Effect.gen(function* () {
        const retry = RetryPolicy.make({ maxRetries: 1 })
        yield* consume(queue, [], { retry, retryDelay: 1000 }, ({ attempts, headers }) => {
          seen.push([attempts, headers])
          return no
        })
        const QueueUrl = yield* Effect.promise(() => urlOf(behind, queue))
        yield* Effect.promise(() => behind.sendMessage({ QueueUrl, MessageBody: '"x"', MessageAttributes: ten }))
        yield* until("two runs", () => seen.length === 2)
        yield* untilEmpty(behind, queue)
      })
    )
    const headers = Object.fromEntries(ids(10).map((name) => [name, `of ${name}`]))
    assert.deepStrictEqual(seen, [
      [1, headers],
      [2, headers]
    ])
    const [letter] = await drain(behind, `${queue}.dlq`)
    assert.deepInclude(toDelivery(letter!, { uncounted: 0, before: 0, now: 0 }).headers, headers)
    assert.isAtMost(Object.keys(letter?.MessageAttributes ?? {}).length, 10)
  })
})
