/** What an operator sees and makes of a queue's plan, on real nsqd. */
import { Backoff, Broker, RetryPolicy } from "@requeue/core"
import { Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { assert, describe, test } from "vitest"
import { adapter } from "../../src/index.ts"
import { channels } from "../real/raw.ts"
import { server } from "./server.ts"
import { on, queueName } from "../world.ts"

const one = await server({ nodes: 2 })
const [first, second] = one.direct.nsqd!
const url = new URL(`nsq://${first}`)
const lookupd = `nsq://?lookupd=${one.found.lookupd!.join(",")}`
const operations = adapter.operations!
const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.sequence(["1 second", "2 hours"]) })

const operated = <A, E>(
  use: (operator: Effect.Success<ReturnType<typeof operations.operate>>) => Effect.Effect<A, E>,
  options: Readonly<Record<string, unknown>> = {},
  at = url
) =>
  Effect.runPromise(
    Effect.flatMap(operations.operate(at, options), use).pipe(
      Effect.scoped,
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )

const states = ({ objects }: Plan.Inspection): ReadonlySet<Plan.State> => new Set(objects.map(({ state }) => state))

const only = (state: Plan.State): ReadonlySet<Plan.State> => new Set([state])

const verdicts = ({ findings }: Plan.Inspection) => findings.map(({ about, verdict }) => `${about} ${verdict}`)

const well = ["nsqd good", "lease good", "delays good", "permissions good"]

describe("a queue's plan", () => {
  test("is what a consumer makes", async () => {
    const queue = queueName("planned")
    const request = { queue, retry }
    assert.deepStrictEqual(states(await operated(({ inspect }) => inspect(request))), only("missing"))
    const listener = { onDelivery: () => {}, onReconnect: () => {} }
    await on({ url }, (broker) => broker.subscribe({ ...request, deadLetterQueues: [`${queue}.dlq`], ...listener }))
    const after = await operated(({ inspect }) => inspect(request))
    assert.deepStrictEqual(states(after), only("present"))
    assert.deepStrictEqual(verdicts(after), well)
    assert.deepStrictEqual(
      new Set((await channels(one.http, queue)).flatMap(({ name, topic }) => [topic, `${topic}/${name}`])),
      new Set(after.objects.map(({ name }) => name))
    )
  })

  test("can be created, once and again, and looking at it makes nothing", async () => {
    const request = { queue: `${queueName("created")}/billing`, retry }
    const [topic] = request.queue.split("/")
    await operated(({ create, inspect }) =>
      Effect.gen(function* () {
        yield* inspect(request)
        assert.deepStrictEqual(yield* Effect.promise(() => channels(one.http, topic!)), [])
        yield* create(request)
        assert.deepStrictEqual(states(yield* inspect(request)), only("present"))
        yield* create(request)
      })
    )
    assert.deepStrictEqual((await channels(one.http, topic!)).map((each) => `${each.topic} ${each.name}`).toSorted(), [
      `${topic} billing`,
      `${topic}.billing.dlq requeue`,
      `${topic}.billing.retry billing`
    ])
  })

  test("says on which nsqd it is, and which of them is away", async () => {
    const request = { queue: queueName("half"), retry }
    await operated(({ create }) => create(request))
    const both = await operated(({ inspect }) => inspect(request), { nsqd: [second] })
    assert.deepStrictEqual(states(both), only("present"))
    assert.strictEqual(both.objects[0]?.why, `only on ${first}`)
    assert.deepStrictEqual(verdicts(both), [...well, ...well])
    const { findings } = await operated(({ inspect }) => inspect(request), { nsqd: ["127.0.0.1:1"] })
    assert.strictEqual(findings[0]?.verdict, "bad")
    assert.match(findings[0]!.detail, /127\.0\.0\.1:1/)
  })

  test("is found and made by nsqlookupd", async () => {
    const request = { queue: queueName("found"), retry }
    await operated(
      ({ create, inspect }) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(states(yield* inspect(request)), only("missing"))
          yield* create(request)
          assert.deepStrictEqual(states(yield* inspect(request)), only("present"))
        }),
      {},
      new URL(lookupd)
    )
  })

  test("cannot be told, nor made, without the HTTP interface", async () => {
    const request = { queue: queueName("unknown"), retry }
    await operated(
      ({ create, inspect }) =>
        Effect.gen(function* () {
          const found = yield* inspect(request)
          assert.deepStrictEqual(states(found), only("unknown"))
          assert.deepStrictEqual(verdicts(found), ["nsqd good", "lease good", "delays good"])
          assert.match((yield* Effect.flip(create(request))).message, /http: true/)
        }),
      { http: false }
    )
    assert.deepStrictEqual(await channels(one.http, request.queue), [])
  })

  test("needs no connection", async () => {
    const nowhere = new URL("nsq://127.0.0.1:1")
    const { delays, objects } = await Effect.runPromise(operations.plan({ queue: "orders", retry }, nowhere))
    assert.strictEqual(delays, "requeued by nsqd")
    assert.deepStrictEqual(
      objects.map(({ kind, name }) => `${kind} ${name}`),
      [
        "topic orders",
        "channel orders/requeue",
        "topic orders.requeue.retry",
        "channel orders.requeue.retry/requeue",
        "topic orders.requeue.dlq",
        "channel orders.requeue.dlq/requeue"
      ]
    )
  })
})

describe("a queue's picture", () => {
  const draw = (options: Readonly<Record<string, unknown>>, policy = retry) =>
    Effect.runPromise(Effect.map(operations.plan({ queue: "orders", retry: policy }, url, options), Plan.mermaid))

  const begin = ["flowchart LR", '  n0["orders"] --> n1["orders/requeue"]']
  const copies = ['n2["orders.requeue.retry"]', '  n2 --> n3["orders.requeue.retry/requeue"]']

  test("has nsqd's own delays, and copies where they end", async () => {
    assert.deepStrictEqual((await draw({})).split("\n"), [
      ...begin,
      '  n1 -->|"retry after 1s"| n1',
      `  n1 -->|"retry after 2h, as a copy"| ${copies[0]}`,
      copies[1],
      '  n3 -->|"when due, to the same consumer"| n1',
      '  n1 -->|"dead letters"| n4["orders.requeue.dlq"]'
    ])
  })

  test("has copies only where retries are exact", async () => {
    assert.deepStrictEqual((await draw({ retry: "exact" })).split("\n").slice(2, 4), [
      `  n1 -->|"retry after 1s, 2h, as a copy"| ${copies[0]}`,
      copies[1]
    ])
  })

  test("has every queue of dead letters with its reasons", async () => {
    const policy = RetryPolicy.make({ maxRetries: 0, deadLetter: { routes: { undecodable: "broken" } } })
    assert.deepStrictEqual((await draw({}, policy)).split("\n"), [
      ...begin,
      '  n1 -->|"retries-exhausted, permanent, too-old, too-many-deliveries"| n2["orders.requeue.dlq"]',
      '  n1 -->|"undecodable"| n3["broken"]'
    ])
  })
})

describe("options from an object", () => {
  const refusal = (options: Readonly<Record<string, unknown>>) =>
    Effect.runPromise(Effect.flip(operations.plan({ queue: "orders", retry }, url, options)))

  test("beat those of the URL", async () => {
    const other = new URL(`nsq://${first}?channel=inUrl&http=false`)
    const request = { queue: queueName("beaten"), retry }
    const { objects } = await operated(({ plan }) => plan(request), { channel: "inObject" }, other)
    assert.strictEqual(objects[1]?.name, `${request.queue}/inObject`)
    const { counts } = await Effect.runPromise(
      Effect.provide(
        Effect.map(Broker.Broker, ({ capabilities }) => capabilities),
        adapter.layer(other, { http: true })
      )
    )
    assert.deepStrictEqual(counts, { ready: true, inFlight: true, delayed: true })
  })

  test.each([
    [{ chanel: "billing" }, "chanel", "Did you mean channel?"],
    [{ channel: "a/b" }, "channel", "See the options table of the adapter for nsq"],
    [{ authSecret: 1234 }, "authSecret", "Put the value in quotes"],
    [{ tls: "yes" }, "tls", "Write an object such as { ca, cert, key }"]
  ])("are refused when they are wrong: %j", async (options, field, remedy) => {
    const error = await refusal(options)
    assert.deepStrictEqual([error.field, error.remedy], [field, remedy])
  })
})
