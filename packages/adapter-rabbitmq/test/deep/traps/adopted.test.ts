/** Queues that somebody else has made: what cannot hold is refused, and each remedy is true when it is followed. */
import { Backoff, BrokerError, Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { connect } from "amqplib"
import { assert, describe, test } from "vitest"
import { adapter, type RabbitMqOptions } from "../../../src/index.ts"
import { isAtLeast } from "../../../src/internal/version.ts"
import { balance, get, make, policyOf, readerAndWriter } from "../../real/adoptedBooks.ts"
import { server as ownServer } from "../../real/server.ts"
import { drainIds, on, queueName, until } from "../../world.ts"
import { consume, no, raw, type Run } from "./trap.ts"

// Its own, which all of these queues fill.
const { broker: server, url, version } = await ownServer()
const management = server.managementUrl

const atOnce = [RetryPolicy.make({ maxRetries: 25 }), 26] as const
const delayed = [RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(300) }), 3] as const
const passive = (queue: string) => ({ queues: { [queue]: { assert: "passive" } } }) as const

/** The error of a consumer that does not start. */
const refusal = async (queue: string, options: RabbitMqOptions.Options, retry = atOnce[0]) => {
  const started = Consumer.start(queue, { retry }, () => {})
  const error = await on({ url, ...options }, () => Effect.flip(Effect.scoped(started)))
  assert.instanceOf(error, BrokerError.BrokerError)
  return error
}

const objectsOf = (queue: string, retry: RetryPolicy.RetryPolicy, options: RabbitMqOptions.Options) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(adapter.operations!.operate(new URL(url), { ...options }), ({ create }) =>
        create({ queue, retry })
      )
    )
  )

describe("a consumer does not start, and does when the remedy is followed:", () => {
  test("a stream, and a queue beside it", async () => {
    const [stream, queue] = [queueName("stream"), queueName("beside")]
    const exchange = stream
    await raw(url, async (channel) => {
      await channel.assertExchange(exchange, "fanout")
      await channel.assertQueue(stream, { durable: true, arguments: { "x-queue-type": "stream" } })
      await channel.bindQueue(stream, exchange, "")
    })
    for (const more of [{}, management === undefined ? {} : { management }]) {
      const error = await refusal(stream, { ...passive(stream), ...more })
      assert.match(error.message, /is a stream/)
      assert.match(error.remedy ?? "", /quorum queue or a classic queue that is bound to the same exchange/)
    }
    await make(url, queue, {})
    await raw(url, (channel) => channel.bindQueue(queue, exchange, ""))
    await balance(url, queue, passive(queue), atOnce)
  })

  test("an exclusive queue, and one of another name", async () => {
    const [queue, other] = [queueName("exclusive"), queueName("other")]
    const owner = await connect(url)
    try {
      await (await owner.createChannel()).assertQueue(queue, { exclusive: true })
      for (const assertion of ["passive", "never"] as const) {
        const error = await refusal(queue, { queues: { [queue]: { assert: assertion } } })
        assert.strictEqual(error.reason, "QueueMismatch")
        assert.match(error.remedy ?? "", /use another queue name/)
      }
    } finally {
      await owner.close()
    }
    await make(url, other, {})
    await balance(url, other, passive(other), atOnce)
  })

  test("a queue with other arguments than ours", async () => {
    const queue = queueName("mismatch")
    await make(url, queue, {})
    const error = await refusal(queue, {})
    assert.strictEqual(error.reason, "QueueMismatch")
    assert.include(error.remedy, `Set queues["${queue}"].assert: "passive" to use the queue as it is, or delete it`)
    await balance(url, queue, passive(queue), atOnce)
    await raw(url, (channel) => channel.deleteQueue(queue))
    assert.strictEqual(await refusal(queue, passive(queue)).then(({ reason }) => reason), "QueueMissing")
  })

  test.each(["passive", "never"] as const)("a queue that is missing, with %s", async (assertion) => {
    const queue = queueName("absent")
    const options = { queues: { [queue]: { assert: assertion } } }
    const error = await refusal(queue, options)
    assert.strictEqual(error.reason, "QueueMissing")
    assert.include(error.remedy, `Create the queue, or set queues["${queue}"].assert: "declare"`)
    await make(url, queue, {})
    await balance(url, queue, options, atOnce)
    const declared = queueName("declared")
    await on({ url, queues: { [declared]: { assert: "declare" } } }, () => Consumer.start(declared, {}, () => {}))
  })

  test.runIf(management !== undefined).each([
    ["argument", { "x-queue-type": "quorum", "x-delivery-limit": 3 }, {}],
    ["policy of the server", { "x-queue-type": "quorum", "x-delivery-limit": 50 }, { "delivery-limit": 2 }]
  ])("a limit that is too small for the policy, by %s", async (_, args, policy) => {
    const queue = queueName("small")
    await raw(url, (channel) => channel.assertQueue(queue, { arguments: args }))
    if ("delivery-limit" in policy) await policyOf(management!, queue, policy)
    const error = await refusal(queue, { ...passive(queue), management: management! })
    assert.match(error.message, /x-delivery-limit.*after \d deliveries, but the policy allows/)
    assert.match(
      error.remedy ?? "",
      /^Recreate the queue with an x-delivery-limit of 4 or more, and set no lower limit in a policy/
    )
    await raw(url, (channel) => channel.deleteQueue(queue))
    await make(url, queue, { "x-queue-type": "quorum", "x-delivery-limit": 4 })
    if ("delivery-limit" in policy) await policyOf(management!, queue, { "delivery-limit": 4 })
    await balance(url, queue, { ...passive(queue), management: management! }, atOnce)
  })

  test.each(["passive", "never"] as const)("delays whose objects are missing, with assert %s", async (assertion) => {
    const [queue, prefix] = [queueName("undelayed"), queueName("p").slice(0, 20)]
    await make(url, queue, {})
    await raw(url, (channel) => channel.assertQueue(`${queue}.dlq`))
    const error = await refusal(queue, { prefix, assert: assertion }, delayed[0])
    assert.match(error.detail, new RegExp(`they do not exist: exchange ${prefix}.*, queue ${prefix}`))
    assert.include(error.remedy, `run requeue create with assert: "declare" and queues["${queue}"].assert: "passive"`)
    await objectsOf(queue, delayed[0], {
      prefix,
      assert: "declare",
      queues: { ...passive(queue).queues, ...passive(`${queue}.dlq`).queues }
    })
    await balance(url, queue, { prefix, assert: assertion }, delayed)
  })

  test("native delays of a queue that does not delay", async () => {
    if (!isAtLeast(version, "4.3")) return
    const queue = queueName("undelayed")
    await make(url, queue, { "x-queue-type": "quorum" })
    const error = await refusal(queue, { ...passive(queue), topology: "native" }, delayed[0])
    assert.match(error.detail, /its delays are not known: .*x-delayed-retry-type=none/)
    assert.strictEqual(error.remedy, `Set topology: "auto"`)
    await balance(url, queue, { ...passive(queue), topology: "auto" }, delayed)
  })

  test.runIf(management !== undefined)("a binding that is missing", async () => {
    const queue = queueName("bound")
    await make(url, queue, {})
    const bindings = [{ exchange: "amq.topic", routingKey: queue }]
    const options = { management: management!, queues: { [queue]: { assert: "passive", bindings } } } as const
    const error = await refusal(queue, options)
    assert.include(error.detail, `they do not exist: binding amq.topic -> ${queue}`)
    assert.strictEqual(error.remedy, "Create them as that layout needs them")
    await raw(url, (channel) => channel.bindQueue(queue, "amq.topic", queue))
    await balance(url, queue, options, atOnce)
  })

  test.each([{}, { "x-queue-type": "quorum" }])(
    "a queue %j that drops its oldest message when it is full",
    async (type) => {
      const queue = queueName("dropping")
      await make(url, queue, { ...type, "x-max-length": 4 })
      for (const more of [{}, management === undefined ? {} : { management }]) {
        const error = await refusal(queue, { ...passive(queue), ...more })
        assert.match(error.detail, /x-overflow: when the queue is full, each requeued retry/)
        const accept = `accept the loss by queues["${queue}"].arguments: { "x-overflow": "drop-head" }`
        assert.include(error.remedy, `Recreate the queue with x-overflow reject-publish, or ${accept}`)
      }
      await balance(
        url,
        queue,
        { queues: { [queue]: { assert: "passive", arguments: { "x-overflow": "drop-head" } } } },
        atOnce
      )
      await raw(url, async (channel) => {
        await channel.deleteQueue(queue)
        await channel.deleteQueue(`${queue}.dlq`)
      })
      await make(url, queue, { ...type, "x-max-length": 4, "x-overflow": "reject-publish" })
      await balance(url, queue, passive(queue), atOnce)
    }
  )

  test("delays that lead back by a binding", async () => {
    const queue = queueName("unbound")
    await make(url, queue, {})
    const error = await refusal(queue, { ...passive(queue), topology: "perMessageTtlShared" }, delayed[0])
    assert.match(error.detail, /not bound/)
    assert.strictEqual(error.remedy, `Set topology: "auto"`)
    await balance(url, queue, { ...passive(queue), topology: "auto" }, delayed)
  })
})

describe.concurrent("nothing is declared", () => {
  test.runIf(management !== undefined).each(["passive", "never"] as const)(
    "by a user who may not, with assert %s",
    async (assertion) => {
      const [queue, prefix] = [queueName("forbidden"), queueName("p").slice(0, 20)]
      const user = await readerAndWriter(management!, queueName("user"))
      const options = { ...user, prefix, assert: assertion }
      for (const [retry, attempts] of [atOnce, [RetryPolicy.make({ maxRetries: 0 }), 1]] as const) {
        for (const args of [{}, { "x-queue-type": "quorum" }]) {
          const one = `${queue}-${attempts}-${Object.keys(args).length}`
          await raw(url, (channel) => channel.assertQueue(`${one}.dlq`))
          await make(url, one, args)
          await balance(url, one, options, [retry, attempts])
        }
      }
      const error = await refusal(queue, options)
      assert.strictEqual(error.reason, "QueueMissing")
      const { remedy } = await (async () => {
        await make(url, queue, {})
        await raw(url, (channel) => channel.assertQueue(`${queue}.dlq`))
        return refusal(queue, options, delayed[0])
      })()
      assert.match(remedy ?? "", /as a user who may configure/)
      const queues = { ...passive(queue).queues, ...passive(`${queue}.dlq`).queues }
      await objectsOf(queue, delayed[0], { prefix, assert: "declare", queues })
      await balance(url, queue, options, delayed)
    }
  )

  test.runIf(management !== undefined)("of a queue, where its assert says so: no binding either", async () => {
    const queue = queueName("kept")
    await make(url, queue, {})
    await balance(url, queue, passive(queue), delayed)
    const told = await get(management!, `queues/%2F/${queue}/bindings`)
    const bindings = told as ReadonlyArray<{ readonly source: string }> // As RabbitMQ documents it.
    assert.deepStrictEqual(
      bindings.map(({ source }) => source),
      [""]
    )
  })

  test.each(["quorum", "classic"] as const)(
    "where another configuration has bound it to our exchange: none comes twice through %s levels",
    async (queueType) => {
      const queue = queueName("bound")
      const options = { ...passive(queue), topology: "levels", queueType } as const
      const retry = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.sequence([300, 350, 1000]) })
      await make(url, queue, { "x-queue-type": queueType })
      await objectsOf(queue, retry, options)
      await raw(url, (channel) => channel.bindQueue(queue, "requeue.v1.deliver", queue))
      await balance(url, queue, options, [retry, 4])
    }
  )

  test("where a topology of one's own has its delays", async () => {
    for (const topology of ["perMessageTtl", "perDelayQueue", "waitLoop", "levels", "ladder"] as const) {
      const queue = queueName("own")
      await make(url, queue, { "x-queue-type": "quorum" })
      await balance(url, queue, { ...passive(queue), topology }, [
        RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(300) }),
        2
      ])
    }
  })
})

describe.concurrent("a queue that nobody knows", () => {
  test.each([
    ["classic", {}],
    ["quorum", { "x-queue-type": "quorum", "x-delivery-limit": 2 }]
  ])("counts the deliveries of a consumer that dies again and again: %s", async (_, args) => {
    const queue = queueName("crash")
    await raw(url, (channel) => channel.assertQueue(queue, { arguments: args }))
    await raw(url, async (channel) => channel.sendToQueue(queue, Buffer.from('"x"'), { messageId: "a" }))
    const user = management === undefined ? {} : await readerAndWriter(management, queueName("user"))
    const attempts: Array<number> = []
    for (let times = 1; times <= 6; times++) {
      await on({ url, ...user, assert: "never" }, (broker) =>
        Effect.gen(function* () {
          const subscription = yield* broker.subscribe({
            queue,
            retry: RetryPolicy.make({ maxRetries: 50 }),
            deadLetterQueues: [],
            onDelivery: (delivery) => attempts.push(delivery.attempts),
            onReconnect: () => {}
          })
          subscription.credit(1)
          yield* until("its delivery", () => attempts.length === times)
        })
      )
    }
    assert.deepStrictEqual(attempts, [1, 2, 3, 4, 5, 6])
    assert.deepStrictEqual(await drainIds(url, queue), ["a"])
  })
})

test("a single active consumer's queue has all of its credit again after a pause", async () => {
  const queue = queueName("active")
  await raw(url, async (channel) => {
    await channel.assertQueue(queue, { arguments: { "x-queue-type": "quorum", "x-single-active-consumer": true } })
    for (let id = 0; id < 20; id++) channel.sendToQueue(queue, Buffer.from('"x"'), { messageId: `${id}` })
  })
  let deliveries = 0
  await on({ url, ...passive(queue) }, (broker) =>
    Effect.gen(function* () {
      const subscription = yield* broker.subscribe({
        queue,
        retry: atOnce[0],
        deadLetterQueues: [],
        onDelivery: () => void deliveries++,
        onReconnect: () => {}
      })
      subscription.credit(1)
      yield* until("the first delivery", () => deliveries === 1)
      subscription.credit(20)
      yield* until("the others", () => deliveries === 20)
    })
  )
})

describe.concurrent("a queue that its producers have filled while a handler ran", () => {
  const quorum = { "x-queue-type": "quorum" }
  const cells = [undefined, management].flatMap((address) =>
    [0, 300].flatMap((delay) =>
      (
        [
          ["reject-publish", quorum],
          ["reject-publish", {}],
          ["reject-publish-dlx", {}],
          ["drop-head", quorum],
          ["drop-head", {}]
        ] as const
      ).map(([overflow, type]) => ({
        address,
        delay,
        overflow,
        isManaged: address !== undefined,
        type: Object.keys(type).length > 0 ? "quorum" : "classic"
      }))
    )
  )

  test.each(cells)("$type, $overflow, retries after $delay ms, with management: $isManaged", async (cell) => {
    const { address, delay, overflow, type } = cell
    const queue = queueName("full")
    const args = { "x-queue-type": type, "x-max-length": 2, "x-overflow": overflow }
    const send = (...ids: ReadonlyArray<string>) =>
      raw(url, async (channel) => {
        for (const messageId of ids) channel.sendToQueue(queue, Buffer.from('"x"'), { persistent: true, messageId })
      })
    await raw(url, (channel) => channel.assertQueue(queue, { durable: true, arguments: args }))
    await send("a")
    const runs: Array<Run> = []
    let isFull = false
    const retry = RetryPolicy.make({ maxRetries: 2, ...(delay > 0 ? { backoff: Backoff.constant(delay) } : {}) })
    const told = address === undefined ? {} : { management: address }
    const accepted = overflow === "drop-head" ? { arguments: { "x-overflow": overflow } } : {}
    await on({ url, ...told, queues: { [queue]: { assert: "passive", ...accepted } } }, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry, concurrency: 1, prefetch: 0 }, ({ id }) =>
          Effect.gen(function* () {
            if (id !== "a") return
            if (!isFull) yield* Effect.promise(() => send("b", "c"))
            isFull = true
            return yield* no()
          })
        )
        yield* until("its end", async () => {
          const letters = await raw(url, (channel) => channel.checkQueue(`${queue}.dlq`))
          const left = await raw(url, (channel) => channel.checkQueue(queue))
          return letters.messageCount === 1 && left.messageCount === 0
        })
      })
    )
    const counted = (id: string) => runs.filter((run) => run.id === id).length
    assert.strictEqual(counted("a"), 3)
    assert.strictEqual(counted("c"), 1)
    // A copy of the first one makes the server drop it, as was accepted; a reject, where the limit is told by then, does not.
    if (overflow === "drop-head" && delay === 0) assert.isAtMost(counted("b"), 1)
    else assert.strictEqual(counted("b"), 1)
  })
})
