/** Clients, credentials and endpoints that the program brings itself. */
import { SQSClient } from "@aws-sdk/client-sqs"
import { ConfigurationError, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { Agent } from "node:http"
import { assert, describe, test } from "vitest"
import { SqsBroker, SqsOptions } from "../../src/index.ts"
import { connect } from "../real/connect.ts"
import { strict } from "./strict.ts"
import { on, outgoing, queueName, until } from "../real/world.ts"

const { another, client: tests, url } = await strict()

const aws = "sqs://eu-west-1"
const { credentials: key } = Result.getOrThrow(SqsOptions.decode({ url })).address
const accessKeyId = key!.accessKeyId
const secretAccessKey = Redacted.value(key!.secretAccessKey)
const endpointOf = (proxied: string): string => `http://${new URL(proxied).host}`

/** Sends a message and handles it. */
const roundTrip = (options: SqsOptions.Options): Promise<void> =>
  on(options, (broker) =>
    Effect.gen(function* () {
      const queue = queueName("own")
      let seen = 0
      yield* broker.publish([outgoing(queue, "m1")])
      yield* Consumer.start(queue, {}, () => void seen++)
      yield* until("handled", () => seen === 1)
    })
  )

const fail = (options: SqsOptions.Options): Promise<ConfigurationError.ConfigurationError> =>
  Effect.runPromise(
    Effect.scoped(Effect.flip(SqsBroker.make(options)))
  ) as Promise<ConfigurationError.ConfigurationError> // the only error of options

describe.concurrent("credentials", () => {
  test("with a session token: it goes with every call", async () => {
    await using own = await another()
    await roundTrip({ url: own.url, sessionToken: Redacted.make("token-1") })
    assert.deepStrictEqual(own.tokens(), ["token-1"])
  })

  test("from a function: it is asked once, and again when SQS says that they have expired", async () => {
    await using own = await another()
    let asked = 0
    const credentials = async () => ({ accessKeyId, secretAccessKey, sessionToken: `token-${++asked}` })
    const endpoint = endpointOf(own.url)
    await on({ url: aws, endpoint, credentials }, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("expired")
        let seen = 0
        yield* Consumer.start(queue, {}, () => void seen++)
        assert.strictEqual(asked, 1)
        for (const action of ["SendMessageBatch", "ReceiveMessage"]) {
          own.fail({ action }, "ExpiredToken")
          yield* broker.publish([outgoing(queue, action)])
        }
        yield* until("both", () => seen === 2 && asked === 3)
      })
    )
    assert.deepStrictEqual(own.tokens(), ["token-1", "token-2", "token-3"])
  })

  test("from a function: it is asked again before they expire", async () => {
    await using own = await another()
    let asked = 0
    const credentials = async () => {
      asked++
      return { accessKeyId, secretAccessKey, expiration: new Date(Date.now() + (asked === 1 ? 60_000 : 3_600_000)) }
    }
    await roundTrip({ url: aws, endpoint: endpointOf(own.url), credentials })
    assert.strictEqual(asked, 2)
  })

  test("from a function that fails, or answers none: the call's error says so, and it is asked again", async () => {
    await using own = await another()
    const answers = [
      () => Promise.reject(new Error("no role")),
      () => Promise.resolve({ secretAccessKey: "hunter2" } as never), // what JavaScript lets through
      () => Promise.resolve({ accessKeyId, secretAccessKey, expiration: "soon" } as never),
      () => Promise.resolve({ accessKeyId, secretAccessKey, expiration: new Date("soon") }),
      () => Promise.resolve({ accessKeyId, secretAccessKey, sessionToken: 5 } as never),
      () => Promise.resolve({ accessKeyId, secretAccessKey })
    ]
    const options = { url: aws, endpoint: endpointOf(own.url), credentials: () => answers.shift()!() }
    await on(options, (broker) =>
      Effect.gen(function* () {
        const send = broker.publish([outgoing(queueName("none"), "m1")])
        assert.match(String(yield* Effect.flip(send)), /has failed with Error; its text may contain a secret/)
        const error = String(yield* Effect.flip(send))
        assert.match(error, /credentials answered no accessKeyId/)
        assert.notInclude(error, "hunter2")
        for (const fault of [
          "an expiration that is not a Date",
          "an expiration that is not a Date",
          "a sessionToken that is not text"
        ]) {
          const refused = yield* Effect.flip(send)
          assert.deepInclude(refused, { reason: "AccessRefused" })
          assert.include(refused.message, `credentials answered ${fault}`)
        }
        yield* send
      })
    )
  })
})

describe.concurrent("a client of the program's own", () => {
  test("is used as it is, and stays open", async () => {
    await using own = await another()
    const client = connect(own.url)
    const calls: Array<string> = []
    client.middlewareStack.add(
      (next, { commandName = "" }) =>
        (args) => {
          calls.push(commandName)
          return next(args)
        },
      { step: "initialize" }
    )
    const before = client.middlewareStack.identify().length
    await roundTrip({ url: aws, client })
    assert.includeMembers(calls, ["SendMessageBatchCommand", "ReceiveMessageCommand", "DeleteMessageBatchCommand"])
    assert.strictEqual(client.middlewareStack.identify().length, before)
    await client.listQueues({})
    client.destroy()
  })

  test("of another region than the URL is refused", async () => {
    const client = new SQSClient({ region: "us-east-1" })
    const { message } = await fail({ url: aws, client })
    assert.match(message, /client.*its region is us-east-1, the URL names eu-west-1.*sqs:\/\/us-east-1/)
  })

  test("keeps the rule that a queue is of the connection's region", async () => {
    const queue = `arn:aws:sqs:us-east-1:000000000000:${queueName("far")}`
    const error = await on({ url: aws, client: tests }, (broker) =>
      Effect.flip(broker.publish([outgoing(queue, "m1")]))
    )
    assert.match(String(error), /is in us-east-1, the connection is to eu-west-1/)
  })
})

describe.concurrent("the way of requests", () => {
  test.for<[string, (host: string) => SqsOptions.SdkOptions["endpoint"]]>([
    ["a URL", (host) => host],
    ["a function", (host) => async () => host]
  ])("leads to an endpoint that is %s", async ([, endpoint]) => {
    await using own = await another()
    await roundTrip({ url: aws, endpoint: endpoint(endpointOf(own.url)), accessKeyId, secretAccessKey })
    assert.isAbove(own.calls()["ReceiveMessage"] ?? 0, 0)
  })

  test("goes through an agent, as that of a proxy", async () => {
    class Counted extends Agent {
      made = 0
      override createConnection(...args: Parameters<Agent["createConnection"]>) {
        this.made++
        return super.createConnection(...args)
      }
    }
    const httpAgent = new Counted({ keepAlive: true })
    await roundTrip({ url, requestHandler: { httpAgent } })
    assert.isAbove(httpAgent.made, 0)
    httpAgent.destroy()
  })

  test("is a handler of the program's own", async () => {
    const { requestHandler } = tests.config
    let requests = 0
    const handler: typeof requestHandler = Object.create(requestHandler, {
      handle: {
        value: (...args: Parameters<typeof requestHandler.handle>) => {
          requests++
          return requestHandler.handle(...args)
        }
      },
      destroy: { value: () => {} }
    })
    await roundTrip({ url, requestHandler: handler })
    assert.isAbove(requests, 0)
  })
})
