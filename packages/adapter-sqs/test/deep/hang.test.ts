/** What hangs of the program's own, or in the middle of an answer: every call ends, says why, and is made anew. */
import { BrokerError, Broker, Consumer } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { Readable } from "node:stream"
import { assert, describe, test } from "vitest"
import { SqsOptions } from "../../src/index.ts"
import { strict } from "./strict.ts"
import { consume, on, outgoing, queueName, until, type Run } from "../real/world.ts"

const { another, client, url } = await strict()

const { credentials: key } = Result.getOrThrow(SqsOptions.decode({ url })).address
const identity = { accessKeyId: key!.accessKeyId, secretAccessKey: Redacted.value(key!.secretAccessKey) }
const never = new Promise<never>(() => {})

/** Options of a server's URL, with credentials that a function answers. */
const withCredentials = (server: string, credentials: SqsOptions.SdkOptions["credentials"]): SqsOptions.Options => ({
  url: "sqs://eu-west-1",
  endpoint: `http://${new URL(server).host}`,
  requestTimeout: 1000,
  credentials
})

/** A request handler that can be made to do something else. */
const handler = () => {
  const { requestHandler } = client.config
  const state: { instead?: () => Promise<unknown> } = {}
  const value = (...args: Parameters<typeof requestHandler.handle>) =>
    state.instead?.() ?? requestHandler.handle(...args)
  const own: typeof requestHandler = Object.create(requestHandler, { handle: { value }, destroy: { value: () => {} } })
  return { own, state }
}

const errorOf = (effect: Effect.Effect<unknown, BrokerError.BrokerError>) => Effect.flip(effect)

describe.concurrent("credentials that hang", () => {
  test("at a refresh: the consumer is down, says why, asks anew, and goes on", async () => {
    let [hangs, asked] = [false, 0]
    const runs: Array<Run> = []
    // They are asked for at every call.
    const provider = () => {
      asked++
      return hangs ? never : Promise.resolve({ ...identity, expiration: new Date() })
    }
    await on(withCredentials(url, provider), (broker) =>
      Effect.gen(function* () {
        const queue = queueName("refresh")
        const consumer = yield* consume(queue, runs)
        hangs = true
        yield* until("down", () => consumer.health().state === "down")
        assert.match(consumer.health().trouble!.because, /ConnectionFailed: .*credentials gave no answer within 1s/)
        const { because, state } = broker.connection()
        assert.strictEqual(state, "down")
        assert.match(because ?? "", /ConnectionFailed: .*credentials gave no answer within 1s/)
        const before = asked
        yield* until("asked anew", () => asked > before)
        hangs = false
        yield* until("running", () => consumer.health().state === "running")
        yield* broker.publish([outgoing(queue, "m1")])
        yield* until("handled", () => runs.length === 1)
      })
    )
  })

  test("a send has certainly not been sent, and is not sent later", async () => {
    await using own = await another()
    const { promise, resolve } = Promise.withResolvers<typeof identity>()
    await on(
      withCredentials(own.url, () => promise),
      (broker) =>
        Effect.gen(function* () {
          const queue = queueName("unsent")
          const error = yield* errorOf(broker.publish([outgoing(queue, "m1")]))
          assert.deepInclude(error, { reason: "ConnectionFailed" })
          assert.isFalse(BrokerError.isDoubtful(error))
          assert.match(error.message, /Nothing was sent/)
          resolve(identity)
          // What has come late is good for the next call.
          yield* broker.publish([outgoing(queue, "m2")])
        })
    )
    assert.strictEqual(own.calls()["SendMessageBatch"], 1)
  })

  test("every call of an operator ends, and so does the start of a consumer", async () => {
    await on(
      withCredentials(url, () => never),
      (broker) =>
        Effect.gen(function* () {
          const queue = queueName("asked")
          const letters = yield* DeadLetters.make(queue)
          const calls: ReadonlyArray<Effect.Effect<unknown, unknown, Broker.Broker | Scope.Scope>> = [
            Consumer.start(queue, {}, () => {}),
            broker.admin.counts(queue),
            letters.count,
            letters.list(),
            letters.list({ filter: () => true }),
            letters.redrive(),
            letters.purge({ all: true }),
            letters.purge({ filter: () => true })
          ]
          for (const call of calls) {
            const error = yield* Effect.flip(Effect.timeout(call, "10 seconds"))
            assert.match(String(error), /credentials gave no answer/)
          }
        })
    )
  })

  test("what holds a message ends in bounded time", async () => {
    let hangs = false
    const provider = () => (hangs ? never : Promise.resolve({ ...identity, expiration: new Date() }))
    await on(withCredentials(url, provider), (broker) =>
      Effect.gen(function* () {
        const queue = queueName("ends")
        const scope = yield* Scope.make()
        let begun = false
        const start = Consumer.start(queue, { drainTimeout: 1000 }, () => {
          begun = true
          hangs = true
          return Effect.sleep(100)
        })
        yield* Scope.provide(start, scope)
        yield* broker.publish([outgoing(queue, "m1")])
        yield* until("begun", () => begun)
        const [took] = yield* Effect.timed(Scope.close(scope, Exit.void))
        assert.isBelow(Duration.toMillis(took), 10_000)
      })
    )
  })
})

test.concurrent("an endpoint that hangs: nothing was sent", async () => {
  const options = { ...withCredentials(url, async () => identity), endpoint: () => never }
  await on(options, (broker) =>
    Effect.gen(function* () {
      const error = yield* errorOf(broker.publish([outgoing(queueName("where"), "m1")]))
      assert.match(error.message, /ConnectionFailed: .*endpoint gave no answer within 1s/)
    })
  )
})

test.concurrent("credentials that throw: nothing was sent, which is told with a remedy", async () => {
  const provider = () => Promise.reject(Object.assign(new Error("STS is away"), { code: "ECONNRESET" }))
  await on(withCredentials(url, provider), (broker) =>
    Effect.gen(function* () {
      const error = yield* errorOf(broker.publish([outgoing(queueName("thrown"), "m1")]))
      assert.match(error.message, /ConnectionFailed: .*has failed with Error \(ECONNRESET\).*Nothing was sent/)
    })
  )
})

describe.concurrent("a request handler", () => {
  test.each<[name: string, instead: () => Promise<unknown>]>([
    ["that hangs", () => never],
    [
      "whose answer stops in its middle",
      async () => ({ response: { statusCode: 200, headers: {}, body: new Readable({ read: () => {} }) } })
    ]
  ])("%s: a send may have been done, receives are a trouble, and both go on later", async (_, instead) => {
    const { own, state } = handler()
    const runs: Array<Run> = []
    await on({ url, requestHandler: own, requestTimeout: 1000 }, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("way")
        yield* broker.publish([outgoing(queue, "m0")])
        const consumer = yield* consume(queue, runs)
        yield* until("the first", () => runs.length === 1)
        state.instead = instead
        const error = yield* errorOf(broker.publish([outgoing(queue, "m1")]))
        assert.match(error.message, /Timeout: .*no answer within/)
        yield* until("down", () => consumer.health().state === "down")
        assert.match(consumer.health().trouble!.because, /Timeout: .*no answer within/)
        delete state.instead
        yield* broker.publish([outgoing(queue, "m2")])
        yield* until("handled", () => runs.some(({ id }) => id === "m2"))
        assert.strictEqual(consumer.health().state, "running")
      })
    )
  })
})
