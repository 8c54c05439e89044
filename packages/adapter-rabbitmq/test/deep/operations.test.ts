/** A queue's plan, inspected and created on a real server. */
import { Backoff, RetryPolicy } from "@requeue/core"
import { Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { adapter } from "../../src/index.ts"
import { shared } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { cleaned } from "./cleaning.ts"
import { drainIds, on, outgoing, queueName, until } from "../world.ts"

const one = await shared()
const url = new URL(one.url)
const management = one.broker.managementUrl
const operations = adapter.operations!
const retry = RetryPolicy.make({ backoff: Backoff.sequence(["1 second", "1 minute"]) })

const operated = <A, E>(
  use: (operator: Effect.Success<ReturnType<typeof operations.operate>>) => Effect.Effect<A, E>,
  options: Readonly<Record<string, unknown>> = {}
) => Effect.runPromise(Effect.scoped(Effect.flatMap(operations.operate(url, options), use)))

const states = ({ objects }: Plan.Inspection, of: (kind: string) => boolean): ReadonlySet<Plan.State> =>
  new Set(objects.filter(({ kind }) => of(kind)).map(({ state }) => state))

const stateOf = ({ objects }: Plan.Inspection, name: string): Plan.State | undefined =>
  objects.find((object) => object.kind === "queue" && object.name === name)?.state

const isNoBinding = (kind: string) => kind !== "binding"

describe("a queue's plan", () => {
  test("is what a consumer declares", async () => {
    const queue = queueName("planned")
    const request = { queue, retry }
    await operated((operator) =>
      Effect.gen(function* () {
        const before = yield* operator.inspect(request)
        assert.strictEqual(stateOf(before, queue), "missing")
        assert.strictEqual(stateOf(before, `${queue}.dlq`), "missing")
      })
    )
    const listener = { onDelivery: () => {}, onReconnect: () => {} }
    await on({ url: one.url }, (broker) =>
      broker.subscribe({ ...request, deadLetterQueues: [`${queue}.dlq`], ...listener })
    )
    assert.deepStrictEqual(
      states(await operated(({ inspect }) => inspect(request)), isNoBinding),
      new Set<Plan.State>(["present"])
    )
  })

  test.concurrent.each([{}, { names: { waitingQueue: "{queue}-waits" } }])(
    "tells of what a former waitLoop has left, and clean moves it on: %j",
    { timeout: 60_000 },
    async (named) => {
      const queue = queueName("former")
      // One clean runs at a time under a prefix.
      const names = { ...named, prefix: queueName("p").slice(0, 20) }
      const [waiting] = Object.values(named.names ?? { waitingQueue: "{queue}.waiting.v1" }).map((name) =>
        name.replace("{queue}", queue)
      )
      await on({ url: one.url, topology: "waitLoop", ...names }, (broker) =>
        broker.publish([outgoing(queue, "a", { delay: 100 })])
      )
      const inspected = () => operated(({ inspect }) => inspect({ queue, retry }), names)
      await Effect.runPromise(
        until("it waits", async () => {
          const count = raw(one.url, (channel) => channel.checkQueue(waiting!))
          return (await count).messageCount === 1
        })
      )
      const left = ({ findings }: Plan.Inspection) => findings.filter(({ about }) => about === "left behind")
      assert.match(left(await inspected())[0]?.detail ?? "", /^1 messages wait in /)
      if (management === undefined) return
      const report = await cleaned(queue, { url: one.url, management, ...names }, { isWhole: false })
      assert.include(
        report.objects.find(({ name }) => name === waiting),
        { outcome: "removed" }
      )
      assert.deepStrictEqual(await drainIds(one.url, queue), ["a"])
      assert.deepStrictEqual(left(await inspected()), [])
    }
  )

  test("can be created, once and again", async () => {
    const request = { queue: queueName("created"), retry }
    await operated(({ create, inspect }) =>
      Effect.gen(function* () {
        yield* create(request)
        assert.deepStrictEqual(states(yield* inspect(request), isNoBinding), new Set<Plan.State>(["present"]))
        yield* create(request)
      })
    )
  })

  test("looking at it makes nothing", async () => {
    const request = { queue: queueName("looked"), retry }
    await operated(({ inspect }) =>
      Effect.gen(function* () {
        yield* inspect(request)
        assert.strictEqual(stateOf(yield* inspect(request), request.queue), "missing")
      })
    )
  })

  test("differs from a queue with other settings, which stays as it is", async () => {
    const request = { queue: queueName("other"), retry }
    await operated(({ create }) => create(request), {
      queues: { [request.queue]: { arguments: { "x-max-length": 7 } } }
    })
    await operated(({ create, inspect }) =>
      Effect.gen(function* () {
        const { objects } = yield* inspect(request)
        const found = objects.find(({ kind, name }) => kind === "queue" && name === request.queue)
        assert.strictEqual(found?.state, "different")
        assert.match(found?.why ?? "", /x-max-length.*7/)
        assert.strictEqual((yield* Effect.flip(create(request)))._tag, "BrokerError")
      })
    )
  })

  test("keeps the delivery limit with which its queue was made, and tells so", async () => {
    const request = { queue: queueName("kept"), retry }
    await operated(({ create }) => create(request), { deliveryLimit: 50 })
    await operated(({ create, inspect }) =>
      Effect.gen(function* () {
        const { findings, objects } = yield* inspect(request)
        assert.deepStrictEqual(
          new Set(objects.filter(({ kind }) => kind !== "binding").map(({ state }) => state)),
          new Set(["present"])
        )
        assert.include(
          findings.map(({ detail }) => detail),
          `queue ${request.queue} keeps x-delivery-limit=50 from when it was made`
        )
        yield* create(request)
      })
    )
  })

  test("has bindings that only the management interface reports", async () => {
    const request = { queue: queueName("bound"), retry }
    await operated(({ create }) => create(request))
    const without = await operated(({ inspect }) => inspect(request))
    assert.deepStrictEqual(
      states(without, (kind) => kind === "binding"),
      new Set<Plan.State>(["unknown"])
    )
    assert.deepStrictEqual(
      without.findings.map(({ verdict }) => verdict),
      ["unknown"]
    )
    if (management === undefined) return
    const found = await operated(({ inspect }) => inspect(request), { management })
    assert.deepStrictEqual(
      states(found, () => true),
      new Set<Plan.State>(["present"])
    )
    assert.deepStrictEqual(new Set(found.findings.map(({ verdict }) => verdict)), new Set(["good"]))
  })

  test("needs no connection", async () => {
    const nowhere = new URL("amqp://127.0.0.1:1")
    const { delays, objects } = await Effect.runPromise(operations.plan({ queue: "orders", retry }, nowhere))
    assert.strictEqual(delays, "ladder")
    assert.include(
      objects.map(({ name }) => name),
      "requeue.v1.q.delay.60000"
    )
  })
})

describe("of a queue that is not declared", () => {
  const made = async (args: Readonly<Record<string, unknown>>) => {
    const queue = queueName("adopted")
    await raw(one.url, (channel) => channel.assertQueue(queue, { arguments: args }))
    return { request: { queue, retry }, options: { queues: { [queue]: { assert: "passive" } } } }
  }
  const findingsOf = async (
    { options, request }: Awaited<ReturnType<typeof made>>,
    more: Readonly<Record<string, unknown>> = {}
  ) => (await operated(({ inspect }) => inspect(request), { ...options, ...more })).findings

  test("verify tells what it is, and who has told", async () => {
    const queue = await made({ "x-message-ttl": 60_000 })
    assert.deepInclude(await findingsOf(queue), {
      about: "found out",
      verdict: "good",
      detail: "classic, known from the server's refusals"
    })
    const bad = (await findingsOf(queue)).filter(({ verdict }) => verdict === "bad")
    assert.deepStrictEqual(
      bad.map(({ detail }) => detail),
      [`queue ${queue.request.queue}: messages that stay in it for 1m, retries too, are lost`]
    )
    if (management === undefined) return
    assert.include(
      (await findingsOf(queue, { management })).map(({ detail }) => detail),
      "classic, reported by the management interface"
    )
  })

  test("plan tells it as well, and binds nothing to it", async () => {
    const { options, request } = await made({ "x-queue-type": "quorum" })
    const { notes, objects } = await operated(({ plan }) => plan(request), options)
    const note = `queue ${request.queue} is used as it is: quorum, unknown delivery limit, known from the server's refusals`
    assert.include(notes, note)
    assert.isFalse(objects.some(({ kind, name }) => kind === "binding" && name.endsWith(`-> ${request.queue}`)))
  })

  test("a stream, and one that is missing, are no more planned than consumed", async () => {
    const stream = await made({ "x-queue-type": "stream" })
    const unplanned = await operated(({ plan }) => Effect.flip(plan(stream.request)), stream.options)
    const unverified = await operated(({ inspect }) => Effect.flip(inspect(stream.request)), stream.options)
    for (const { message } of [unplanned, unverified]) assert.match(message, /is a stream.*Consume a quorum queue/)
    await raw(one.url, (channel) => channel.deleteQueue(stream.request.queue))
    const error = await operated(({ plan }) => Effect.flip(plan(stream.request)), stream.options)
    assert.match(error.message, /does not exist.*Create the queue/)
    const { objects } = await operated(({ inspect }) => inspect(stream.request), stream.options)
    assert.strictEqual(objects.find(({ name }) => name === stream.request.queue)?.state, "missing")
  })
})

describe("a queue's picture", () => {
  const draw = (settings: Readonly<Record<string, unknown>>, policy = retry) =>
    Effect.runPromise(Effect.map(operations.plan({ queue: "orders", retry: policy }, url, settings), Plan.mermaid))

  test("leads through the delays and back", async () => {
    const picture = await draw({ topology: "ladder" })
    for (const way of [
      /n0\["orders"\] -->\|"retry after 1s"\| n\d+\["requeue\.v1\.q\.delay\.1000"\]/,
      /n0 -->\|"any other delay"\| n\d+\["requeue\.v1\.q\.level\.\*"\]/,
      /n0 -->\|"dead letters"\| n\d+\["orders\.dlq"\]/,
      /n\d+ -->\|"after 1m"\| n\d+/,
      /\n {2}n\d+ --> n0/
    ]) {
      assert.match(picture, way)
    }
  })

  test.each(["levels", "perMessageTtl", "perMessageTtlShared", "perDelayQueue", "waitLoop"])(
    "of %s has a way into the delay and a way back",
    async (topology) => {
      const picture = await draw({ topology })
      assert.match(picture, /n0\["orders"\] -->\|"retry after 1s/)
      assert.match(picture, /--> n0/)
    }
  )

  test("of native delays is a loop", async () => {
    assert.match(
      await draw({ topology: "native" }, RetryPolicy.make({ backoff: Backoff.constant("5 seconds") })),
      /n0\["orders"\] -->\|"retry after 5s, 5s, 5s"\| n0/
    )
  })
})
