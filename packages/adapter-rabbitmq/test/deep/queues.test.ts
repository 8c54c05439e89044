/** Queues as their users define them: types, limits, exchanges of their own, exclusive queues, priorities of consumers. */
import { Backoff, BrokerError, Consumer, type Event, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { RabbitMqOptions, RabbitMqPlan } from "../../src/index.ts"
import { settingsOf } from "../real/harness.ts"
import { apart, shared } from "../real/server.ts"
import { consume, no, raw, type Run } from "./traps/trap.ts"
import { drainIds, ids, on, outgoing, queueName, until } from "../world.ts"

const one = await shared()
const { url } = one

/** Publishes as a foreign producer does, by an exchange. */
const emit = (exchange: string, routingKey: string, messageId: string, headers: Record<string, unknown> = {}) =>
  Effect.promise(() =>
    raw(url, async (channel) => void channel.publish(exchange, routingKey, Buffer.from('"x"'), { messageId, headers }))
  )

const failing = (queue: string) => Effect.flip(Effect.scoped(Consumer.start(queue, {}, () => {})))

describe("exchanges of the user's own", () => {
  test("are declared and bound, and a retry comes back to the queue that failed alone", async () => {
    const [exchange, failed, other] = [queueName("events"), queueName("failed"), queueName("other")]
    const bindings = [{ exchange, routingKey: "order.*" }]
    const runs: Array<Run> = []
    const seen: Array<Run> = []
    const events: Array<Event.Event> = []
    const options = {
      exchanges: { [exchange]: { type: "topic" } },
      queues: { [failed]: { bindings }, [other]: { bindings } }
    }
    await on({ url, ...options }, () =>
      Effect.gen(function* () {
        const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.sequence([50, 0]) })
        yield* consume(failed, runs, { retry, onEvent: (event) => events.push(event) }, no)
        yield* consume(other, seen, {})
        yield* emit(exchange, "order.created", "a")
        yield* emit(exchange, "invoice.created", "b")
        yield* until("a dead letter", () => events.some(({ _tag }) => _tag === "DeadLettered"))
        yield* until("the other queue's", () => seen.length > 0)
      })
    )
    assert.deepStrictEqual(
      runs.map(({ attempts, id }) => `${id}${attempts}`),
      ["a1", "a2", "a3"]
    )
    assert.deepStrictEqual(
      seen.map(({ id }) => id),
      ["a"]
    )
    assert.deepStrictEqual(await drainIds(url, `${failed}.dlq`), ["a"])
  })

  test("may match headers, by the arguments of a binding", async () => {
    const [exchange, queue] = [queueName("matching"), queueName("matched")]
    const bindings = [{ exchange, arguments: { "x-match": "all", kind: "order" } }]
    const runs: Array<Run> = []
    const options = { exchanges: { [exchange]: { type: "headers" } }, queues: { [queue]: { bindings } } }
    await on({ url, ...options }, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, {})
        yield* emit(exchange, "", "b", { kind: "invoice" })
        yield* emit(exchange, "", "a", { kind: "order" })
        yield* until("a message", () => runs.length > 0)
      })
    )
    assert.deepStrictEqual(
      runs.map(({ id }) => id),
      ["a"]
    )
  })

  test.each<[string, (exchange: string) => RabbitMqOptions.Options]>([
    ["only named", () => ({})],
    ["only looked for", (exchange) => ({ exchanges: { [exchange]: { type: "topic", assert: "passive" } } })]
  ])("that are not there, and %s, are an error of the start, whose remedy is true", async (_, more) => {
    const [exchange, queue] = [queueName("absent"), queueName("bound")]
    const queues = { [queue]: { bindings: [{ exchange, routingKey: "#" }] } }
    const error = await on({ url, queues, ...more(exchange) }, () => failing(queue))
    assert.instanceOf(error, BrokerError.BrokerError)
    assert.strictEqual(error.reason, "QueueMissing")
    const remedy = `Create it, or have it declared: exchanges["${exchange}"]: { type: "topic", assert: "declare" }`
    assert.strictEqual(error.remedy, remedy)
    const runs: Array<Run> = []
    await on({ url, queues, exchanges: { [exchange]: { type: "topic", assert: "declare" } } }, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, {})
        yield* emit(exchange, "any", "a")
        yield* until("a message", () => runs.length === 1)
      })
    )
    await on({ url, queues, ...more(exchange) }, () => consume(queue, runs, {}))
  })

  test("of another type than the one that is there are refused, with a remedy that is true", async () => {
    const [exchange, queue] = [queueName("typed"), queueName("bound")]
    await raw(url, (channel) => channel.assertExchange(exchange, "fanout"))
    const queues = { [queue]: { bindings: [{ exchange }] } }
    const error = await on({ url, exchanges: { [exchange]: { type: "topic" } }, queues }, () => failing(queue))
    assert.instanceOf(error, BrokerError.BrokerError)
    assert.strictEqual(error.reason, "QueueMismatch")
    const remedy = `Set exchanges["${exchange}"].assert: "passive" to use the exchange as it is, or delete it`
    assert.strictEqual(error.remedy, remedy)
    const runs: Array<Run> = []
    const exchanges = { [exchange]: { type: "topic", assert: "passive" } } as const
    await on({ url, exchanges, queues }, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, {})
        yield* emit(exchange, "any", "a")
        yield* until("a message", () => runs.length === 1)
      })
    )
  })
})

describe("a queue's own", () => {
  test("type and delivery limit are declared, beside others of the broker's", async () => {
    const [classic, quorum, other] = [queueName("classic"), queueName("quorum"), queueName("other")]
    const queues = { [classic]: { type: "classic" }, [quorum]: { deliveryLimit: 77 } } as const
    await on({ url, queues }, (broker) => broker.publish([classic, quorum, other].map((queue) => outgoing(queue, "a"))))
    // The server names what differs from the arguments that queues have by default.
    const told = async (queue: string) => {
      const args = { ...RabbitMqPlan.queue(queue, settingsOf({})).arguments, "x-delivery-limit": 5 }
      const refused = await raw(url, (channel) => channel.assertQueue(queue, { arguments: args })).catch(String)
      return /'(x-[a-z-]+)' for queue .* current is (?:the value )?'?(\w+)/.exec(String(refused))?.slice(1)
    }
    assert.deepStrictEqual(await told(quorum), ["x-delivery-limit", "77"])
    assert.deepStrictEqual(await told(other), ["x-delivery-limit", "1000"])
    assert.deepStrictEqual(await told(classic), ["x-overflow", "none"])
    const retry = RetryPolicy.make({ maxRetries: 3 })
    for (const queue of [classic, quorum]) {
      const runs: Array<Run> = []
      await on({ url, queues }, () =>
        Effect.andThen(
          consume(queue, runs, { retry }, no),
          until("a dead letter", async () => (await drainIds(url, `${queue}.dlq`)).length === 1)
        )
      )
      assert.deepStrictEqual(
        runs.map(({ attempts }) => attempts),
        [1, 2, 3, 4]
      )
    }
  })

  test("connection alone sees an exclusive queue, which is made again after a cut", async () => {
    const queue = queueName("exclusive")
    const runs: Array<Run> = []
    const options = { queues: { [queue]: { exclusive: true } } }
    await Effect.runPromise(
      Effect.scoped(
        Effect.flatMap(apart(one), ({ proxied, proxy }) =>
          Effect.promise(() =>
            on({ url: proxied, ...options }, (broker) =>
              Effect.gen(function* () {
                const retry = RetryPolicy.make({ backoff: Backoff.constant(50) })
                yield* consume(queue, runs, { retry }, ({ attempts }) => (attempts === 1 ? no() : undefined))
                yield* broker.publish([outgoing(queue, "a")])
                yield* until("a retry", () => runs.length === 2)
                const error = yield* Effect.promise(() => on({ url, ...options }, () => failing(queue)))
                assert.match(
                  String(error),
                  /QueueMismatch.*belongs to another connection alone: use another queue name/
                )
                proxy.cut()
                yield* until("it is made again", () =>
                  Effect.runPromise(Effect.isSuccess(broker.publish([outgoing(queue, "b")])))
                )
                yield* until("a retry of what was sent then", () =>
                  runs.some(({ id, attempts }) => id === "b" && attempts === 2)
                )
              })
            )
          )
        )
      )
    )
    const gone = await raw(url, (channel) => channel.checkQueue(queue)).then(
      () => "there",
      () => "gone"
    )
    assert.strictEqual(gone, "gone")
  })

  test("consumers of a higher priority get all while they can take it", async () => {
    const queue = queueName("priority")
    const [first, second]: [Array<Run>, Array<Run>] = [[], []]
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* consume(queue, second, { concurrency: 20 })
        yield* Effect.promise(() =>
          on({ url, queues: { [queue]: { consumerPriority: 10 } } }, (broker) =>
            Effect.gen(function* () {
              yield* consume(queue, first, { concurrency: 20 })
              for (const id of ids(30)) {
                yield* broker.publish([outgoing(queue, id)])
                yield* until("its run", () => [...first, ...second].some((run) => run.id === id))
              }
            })
          )
        )
      })
    )
    assert.strictEqual(first.length, 30)
    assert.deepStrictEqual(second, [])
  })
})
