/** What an operator sees and makes of a queue's plan, on a server behind the strict proxy. */
import { Backoff, Broker, RetryPolicy } from "@requeue/core"
import { type Adapter, Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { readFileSync } from "node:fs"
import { assert, describe, test } from "vitest"
import { adapter, SqsOptions, SqsPlan } from "../../src/index.ts"
import { strict } from "./strict.ts"
import { on, queueName } from "../real/world.ts"

const server = await strict()
const url = new URL(server.url)
const operations = adapter.operations!
const retry = RetryPolicy.make({ backoff: Backoff.sequence(["1 second", "1 minute"]) })

const operated = <A, E>(use: (operator: Adapter.Operator) => Effect.Effect<A, E>, options: Adapter.Options = {}) =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(operations.operate(url, { waitTime: 1000, ...options }), use)))

const states = ({ objects }: Plan.Inspection) => objects.map(({ name, state }) => [name, state])

describe("a queue's plan", () => {
  test.each(["", ".fifo"])("is what a consumer makes (orders%s)", async (end) => {
    const base = queueName("planned")
    const request = { queue: `${base}${end}`, retry }
    const names = [`${base}-dlq${end}`, `${base}${end}`]
    assert.deepStrictEqual(
      states(await operated(({ inspect }) => inspect(request))),
      names.map((name) => [name, "missing"])
    )
    const listener = { onDelivery: () => {}, onReconnect: () => {} }
    await on({ url: server.url }, (broker) =>
      broker.subscribe({ ...request, deadLetterQueues: [`${request.queue}.dlq`], ...listener })
    )
    const after = await operated(({ inspect }) => inspect(request))
    assert.deepStrictEqual(
      states(after),
      names.map((name) => [name, "present"])
    )
    assert.deepStrictEqual(
      after.objects.map(({ why }) => why),
      [undefined, undefined]
    )
    assert.deepStrictEqual(new Set(after.findings.map(({ verdict }) => verdict)), new Set(["good"]))
  })

  test("can be created, once and again, where consumers may not", async () => {
    const request = { queue: queueName("created"), retry }
    await operated(
      ({ create, inspect }) =>
        Effect.gen(function* () {
          yield* create(request)
          yield* create(request)
          assert.deepStrictEqual(
            new Set((yield* inspect(request)).objects.map(({ state }) => state)),
            new Set(["present"])
          )
        }),
      { queues: "use" }
    )
  })

  test("to ask about it makes nothing", async () => {
    const request = { queue: queueName("asked"), retry }
    await operated(({ inspect }) =>
      Effect.gen(function* () {
        yield* inspect(request)
        const { objects } = yield* inspect(request)
        assert.deepStrictEqual(new Set(objects.map(({ state }) => state)), new Set(["missing"]))
      })
    )
  })

  test("differs from a queue that cannot keep it, which stays as it is", async () => {
    const request = { queue: queueName("few"), retry }
    await operated(({ create }) => create({ ...request, retry: RetryPolicy.make({ maxRetries: 0 }) }))
    const long = { ...request, retry: RetryPolicy.make({ maxRetries: 20 }) }
    await operated(({ create, inspect }) =>
      Effect.gen(function* () {
        const { findings, objects } = yield* inspect(long)
        const { state, why } = objects.find(({ name }) => name === request.queue)!
        assert.strictEqual(state, "different")
        assert.match(why!, /after 27 receives.*needs more than 31/)
        const bad = findings.filter(({ verdict }) => verdict === "bad")
        assert.deepStrictEqual(
          bad.map(({ about }) => about),
          [`${request.queue} RedrivePolicy`]
        )
        assert.match(bad[0]!.detail, /Set maxReceiveCount to 67/)
        const error = yield* Effect.flip(create(long))
        assert.strictEqual(error._tag === "BrokerError" ? error.reason : error._tag, "QueueMismatch")
      })
    )
  })

  test("tells what is otherwise and does no harm", async () => {
    const request = { queue: queueName("slow"), retry }
    await operated(({ create }) => create(request), { visibilityTimeout: 60_000 })
    const { objects } = await operated(({ inspect }) => inspect(request))
    assert.deepStrictEqual(
      objects.map(({ state, why }) => [state, why]),
      [
        ["present", "VisibilityTimeout is 60"],
        ["present", "VisibilityTimeout is 60"]
      ]
    )
  })

  test("needs no connection", async () => {
    const { delays, objects } = await Effect.runPromise(
      operations.plan({ queue: "orders", retry }, new URL("sqs://eu-west-1"))
    )
    assert.strictEqual(delays, "visibility; delayed copies beyond 12h from receipt")
    assert.deepStrictEqual(
      objects.map(({ name }) => name),
      ["orders-dlq", "orders"]
    )
    assert.include(objects[1]?.details, "RedrivePolicy=to orders-dlq after 33")
  })
})

describe("a queue's picture", () => {
  const draw = (queue: string, options: Adapter.Options = {}) =>
    Effect.runPromise(Effect.map(operations.plan({ queue, retry }, url, options), Plan.mermaid))

  test("has the names of SQS, and what SQS does itself", async () => {
    assert.deepStrictEqual((await draw("orders")).split("\n"), [
      "flowchart LR",
      '  n0["orders"] -->|"retry after 1s, 1m, 1m"| n0',
      '  n0 -->|"dead letters"| n1["orders-dlq"]',
      '  n0 -->|"dead-lettered by SQS after 33 receives"| n1'
    ])
  })
})

describe("the documentation", () => {
  const page = readFileSync(new URL("../../../../docs/sqs.md", import.meta.url), "utf8")
  const drawing = /```mermaid\n([^]*?)\n```/.exec(page)?.[1]
  const text = `queue orders, queues: create
dead letters  orders-dlq
              VisibilityTimeout              30
              MessageRetentionPeriod         1209600
              ReceiveMessageWaitTimeSeconds  20
              SqsManagedSseEnabled           true
              RedriveAllowPolicy             from orders
work          orders
              VisibilityTimeout              30
              MessageRetentionPeriod         345600
              ReceiveMessageWaitTimeSeconds  20
              SqsManagedSseEnabled           true
              RedrivePolicy                  to orders-dlq after 37`
  const policy = RetryPolicy.make({ maxRetries: 5, backoff: Backoff.exponential("1 second", { max: "1 hour" }) })
  const request = { queue: "orders", retry: policy, deadLetterQueues: ["orders.dlq"] }
  const aws = new URL("sqs://eu-west-1")

  test("draws a plan", async () => {
    assert.strictEqual(Plan.mermaid(await Effect.runPromise(operations.plan(request, aws))), drawing)
  })

  test("which is printed, too", () => {
    const settings = Result.getOrThrow(SqsOptions.decode({ url: aws }))
    assert.strictEqual(SqsPlan.format(SqsPlan.make(request, settings) as SqsPlan.Plan), text)
  })
})

describe("options from an object", () => {
  test("beat those of the URL, for the broker and the operator", async () => {
    const given = new URL(url)
    given.searchParams.set("visibilityTimeout", "60000")
    const options = { visibilityTimeout: 90_000, waitTime: 1000 }
    const [broker, operator] = await Effect.runPromise(
      Effect.scoped(
        Effect.all([Effect.provide(Broker.Broker, adapter.layer(given, options)), operations.operate(given, options)])
      )
    )
    assert.strictEqual(broker.capabilities.lease?.duration, 90_000)
    assert.strictEqual(operator.capabilities.lease?.duration, 90_000)
  })

  test("that are not known are refused, and say what was meant", async () => {
    const request = { queue: "orders", retry }
    const options = { visibilityTimout: 90_000 }
    for (const refused of [
      operations.plan(request, url, options),
      Effect.scoped(operations.operate(url, options)),
      Effect.provide(Broker.Broker, adapter.layer(url, options))
    ]) {
      const error = await Effect.runPromise(Effect.flip(refused as Effect.Effect<unknown, unknown>))
      assert.deepInclude(error as object, { field: "visibilityTimout", remedy: "Did you mean visibilityTimeout?" })
    }
  })
})
