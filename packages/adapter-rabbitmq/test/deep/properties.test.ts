/** Exchanges, routing keys and properties of AMQP: as a program asks for them, and as a handler reads them. */
import { Backoff, BrokerError, Consumer, Producer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import type { ConfirmChannel } from "amqplib"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { RabbitMqNative } from "../../src/index.ts"
import { permit, readerAndWriter } from "../real/adoptedBooks.ts"
import { shared } from "../real/server.ts"
import { consume, no, raw, type Run } from "./traps/trap.ts"
import { drainIds, on, queueName, until } from "../world.ts"

const {
  broker: { managementUrl },
  url
} = await shared()
const user = decodeURIComponent(new URL(url).username)

const topic = () => {
  const [exchange, queue] = [queueName("events"), queueName("bound")]
  const exchanges = { [exchange]: { type: "topic" } }
  const queues = { [queue]: { bindings: [{ exchange, routingKey: "order.*" }] } }
  return { exchange, queue, options: { url, exchanges, queues } }
}

const properties = {
  appId: "shop",
  correlationId: "c1",
  priority: 3,
  replyTo: "answers",
  type: "order.paid"
} as const

/** A consumer that writes down what its messages tell of AMQP. */
const telling = (queue: string, told: Array<RabbitMqNative.RabbitMqNative | undefined>, more: Consumer.Options = {}) =>
  Consumer.start(queue, more, (message) => {
    told.push(RabbitMqNative.of(message))
    return no()
  })

/** Makes a queue for answers. */
type AsyncReply = (channel: ConfirmChannel) => Promise<string>

/** A failure at once, one later, then a dead letter. */
const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.sequence([0, 60]) })

const send = (queue: string, native: RabbitMqNative.Options, more: Producer.SendOptions = {}) =>
  Effect.flatMap(Producer.make<string>(queue), (producer) =>
    producer.send("x", { native: RabbitMqNative.make(native), ...more })
  )

const facts = (told: RabbitMqNative.RabbitMqNative | undefined) => {
  if (told === undefined) return undefined
  const { appId, correlationId, exchange, priority, replyTo, routingKey, type } = told
  return { exchange, routingKey, appId, correlationId, priority, replyTo, type }
}

/** The first dead letter, once it is there. */
const letter = (queue: string) =>
  Effect.gen(function* () {
    const letters = yield* DeadLetters.make(`${queue}.dlq`)
    let found: ReadonlyArray<DeadLetters.DeadLetter> = []
    yield* until("a dead letter", async () => (found = await Effect.runPromise(letters.list())).length > 0)
    return found[0]!
  })

describe("a message that is published to an exchange", () => {
  test("tells the same of it at each attempt, in the dead letter, and after a redrive", async () => {
    const { exchange, options, queue } = topic()
    const told: Array<RabbitMqNative.RabbitMqNative | undefined> = []
    const expected = { exchange, routingKey: "order.paid", ...properties }
    await on(options, () =>
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* telling(queue, told, { retry })
            yield* send("order paid", { exchange, routingKey: "order.paid", ...properties })
            assert.deepStrictEqual(facts(RabbitMqNative.of(yield* letter(queue))), expected)
          })
        )
        const letters = yield* DeadLetters.make(`${queue}.dlq`)
        assert.strictEqual((yield* letters.redrive()).redriven, 1)
        yield* telling(queue, told, { retry: RetryPolicy.make({ maxRetries: 0 }) })
        yield* until("the redriven", () => told.length === 4)
      })
    )
    assert.deepStrictEqual(told.map(facts), [expected, expected, expected, expected])
    assert.isTrue(told.every((one) => one?.persistent === true && one.messageId !== undefined))
    assert.isTrue(Object.isFrozen(told[0]!.headers))
  })

  test("is there for foreign consumers with all that was asked for", async () => {
    const { exchange, queue, options } = topic()
    const headers = { count: 7, deep: { a: [1, true] } }
    await on(options, () =>
      Effect.gen(function* () {
        yield* Effect.scoped(Consumer.start(queue, {}, () => {}))
        const native = {
          exchange,
          routingKey: "order.paid",
          headers,
          persistent: false,
          userId: user,
          ...properties
        }
        yield* send("order paid", native, { id: "m1", headers: { "x-tenant": "a", count: "beaten" } })
      })
    )
    const got = await raw(url, (channel) => channel.get(queue, { noAck: true }))
    if (typeof got === "boolean") return assert.fail("there is no message")
    assert.deepInclude(got.fields, { exchange, routingKey: "order.paid" })
    assert.deepInclude(got.properties, { ...properties, messageId: "m1", userId: user, deliveryMode: 1 })
    assert.deepInclude(got.properties.headers, { count: 7, deep: { a: [1, true] }, "x-tenant": "a" })
  })

  test("fails where the exchange leads nowhere, unless nobody has to hear it, and holds up no other", async () => {
    const { exchange, options, queue } = topic()
    const runs: Array<Run> = []
    await on(options, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, {})
        const error = yield* Effect.flip(send("lost", { exchange, routingKey: "invoice.paid" }))
        assert.instanceOf(error, BrokerError.BrokerError)
        assert.deepInclude(error, { reason: "Unroutable", queue: "lost" })
        assert.include(error.message, `nothing is bound to exchange ${exchange} for invoice.paid. Bind a queue`)
        yield* send("heard by nobody", { exchange, routingKey: "refund.paid", mandatory: false })
        yield* send("order paid", { exchange, routingKey: "order.paid" }, { id: "a" })
        yield* until("a message", () => runs.length === 1)
      })
    )
    assert.deepStrictEqual(
      runs.map(({ id }) => id),
      ["a"]
    )
  })

  test("fails where the exchange is not there, with a remedy that is true", async () => {
    const exchange = queueName("absent")
    const error = await on({ url }, () => Effect.flip(send("any", { exchange })))
    assert.deepInclude(error, { reason: "QueueMissing" })
    assert.include(String(error), `exchanges["${exchange}"]: { type: "topic", assert: "declare" }`)
    const exchanges = { [exchange]: { type: "topic", assert: "declare" } } as const
    await on({ url, exchanges }, () => send("any", { exchange, mandatory: false }))
  })

  test("has the name of its queue for a routing key by default", async () => {
    const { exchange, options, queue } = topic()
    const told: Array<RabbitMqNative.RabbitMqNative | undefined> = []
    await on(options, () =>
      Effect.gen(function* () {
        yield* telling(queue, told, { retry })
        yield* send("order.sent", { exchange })
        yield* until("a message", () => told.length > 0)
      })
    )
    assert.deepInclude(told[0], { exchange, routingKey: "order.sent" })
  })
})

describe("what cannot be routed", () => {
  test("holds up nothing else of an exchange that goes by headers", async () => {
    const [exchange, queue] = [queueName("matching"), queueName("matched")]
    const bindings = [{ exchange, arguments: { "x-match": "all", tenant: "a" } }]
    const options = { exchanges: { [exchange]: { type: "headers" } }, queues: { [queue]: { bindings } } }
    const ends: Array<string> = []
    await on({ url, ...options }, () =>
      Effect.gen(function* () {
        yield* consume(queue, [], {})
        const to = (tenant: string, more: RabbitMqNative.Options = {}) =>
          Effect.match(send("events", { exchange, headers: { tenant }, ...more }), {
            onFailure: (error) => ends.push(error instanceof BrokerError.BrokerError ? error.reason : String(error)),
            onSuccess: () => ends.push("sent")
          })
        for (const tenant of ["a", "nobody", "a", "nobody", "a"]) yield* to(tenant)
        yield* to("nobody", { mandatory: false })
      })
    )
    assert.deepStrictEqual(ends, ["sent", "Unroutable", "sent", "Unroutable", "sent", "sent"])
  })

  test("as a hundred exchanges that are not there, disturbs none that is", async () => {
    const exchange = queueName("there")
    const ends: Array<readonly [string, unknown]> = []
    await on({ url, exchanges: { [exchange]: { type: "fanout" } } }, () =>
      Effect.gen(function* () {
        const to = (name: string) =>
          Effect.match(send("events", { exchange: name, mandatory: false }), {
            onFailure: (error) => ends.push([name, error instanceof BrokerError.BrokerError && error.reason]),
            onSuccess: () => ends.push([name, "sent"])
          })
        const names = Array.from({ length: 400 }, (_, at) => (at % 4 === 0 ? queueName("absent") : exchange))
        yield* Effect.forEach(names, to, { concurrency: 20 })
      })
    )
    assert.lengthOf(ends, 400)
    for (const [name, end] of ends) assert.strictEqual(end, name === exchange ? "sent" : "QueueMissing")
  })
})

describe("an answer to replyTo", () => {
  test.each<[string, AsyncReply]>([
    ["an exclusive queue", async (channel) => (await channel.assertQueue("", { exclusive: true })).queue],
    [
      "a queue that is not durable",
      async (channel) => (await channel.assertQueue(queueName("r"), { durable: false })).queue
    ],
    ["the server's own pseudo-queue", async () => "amq.rabbitmq.reply-to"]
  ])("reaches %s, which is not declared", async (_, make) => {
    const queue = queueName("rpc")
    let answered = ""
    await on({ url }, () =>
      Effect.gen(function* () {
        const answers = yield* Producer.make<string>("answers")
        yield* Consumer.start(queue, {}, (message) => {
          const { correlationId, replyTo } = RabbitMqNative.of(message)!
          const native = RabbitMqNative.make({ exchange: "", routingKey: replyTo, correlationId })
          return answers.send("answer", { native })
        })
        yield* Effect.promise(() =>
          raw(url, async (channel) => {
            const replyTo = await make(channel)
            const answer = new Promise<string>((resume) => {
              void channel.consume(
                replyTo,
                (message) => resume(`${message?.content.toString()} ${message?.properties.correlationId}`),
                { noAck: true }
              )
            })
            channel.sendToQueue(queue, Buffer.from('"x"'), { replyTo, correlationId: "c7" })
            answered = await answer
          })
        )
      })
    )
    assert.strictEqual(answered, '"answer" c7')
  })
})

describe("whoever keeps hold of the properties of a message", () => {
  const headers = () => ({ bin: Buffer.from([255, 254, 253]), nested: { list: [1, true] }, at: new Date(5000) })
  const sent = { bin: Buffer.from([255, 254, 253]), nested: { list: [1, true] }, at: { "!": "timestamp", value: 5 } }

  test("changes neither the next attempt nor the dead letter, as a handler", async () => {
    const queue = queueName("written")
    const seen: Array<unknown> = []
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, { retry }, (message) => {
          const { at, bin, nested } = RabbitMqNative.of(message)!.headers
          seen.push({ bin: Buffer.from(bin as Buffer), nested, at }) // As it was sent.
          ;(bin as Buffer)[0] = 0
          assert.throws(() => (nested as { list: Array<unknown> }).list.push("mine"), TypeError)
          return no()
        })
        yield* send(queue, { headers: headers() })
        const { bin, nested, at } = RabbitMqNative.of(yield* letter(queue))!.headers
        seen.push({ bin, nested, at })
      })
    )
    assert.deepStrictEqual(seen, [sent, sent, sent, sent])
  })

  test("changes nothing that goes, as a sender", async () => {
    const queue = queueName("kept")
    const mine = headers()
    const native = RabbitMqNative.make({ headers: mine })
    mine.bin[0] = 0
    mine.nested.list.push(7)
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* Effect.scoped(Consumer.start(queue, {}, () => {}))
        const producer = yield* Producer.make<string>(queue)
        yield* producer.send("x", { native })
      })
    )
    const got = await raw(url, (channel) => channel.get(queue, { noAck: true }))
    assert.deepInclude(typeof got === "boolean" ? {} : got.properties.headers, sent)
  })
})

test("filters of dead letters read the properties", async () => {
  const queue = queueName("filtered")
  await on({ url }, () =>
    Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Consumer.start(queue, { retry: RetryPolicy.make({ maxRetries: 0 }) }, no)
          for (const type of ["keep", "drop", "keep"]) yield* send(queue, { type })
          const letters = yield* DeadLetters.make(`${queue}.dlq`)
          yield* until("the letters", async () => (await Effect.runPromise(letters.count)) === 3)
        })
      )
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      const isDropped: DeadLetters.Selection["filter"] = (one) => RabbitMqNative.of(one)?.type === "drop"
      assert.lengthOf(yield* letters.list({ filter: isDropped }), 1)
      assert.strictEqual(yield* letters.purge({ filter: isDropped }), 1)
      const report = yield* letters.redrive({ filter: (one) => RabbitMqNative.of(one)?.type === "keep" })
      assert.deepInclude(report, { redriven: 2, filtered: 0 })
    })
  )
})

describe("the properties of a message", () => {
  test("of a foreign producer are told with their types, also after a delay", async () => {
    const { exchange, options, queue } = topic()
    const told: Array<RabbitMqNative.RabbitMqNative | undefined> = []
    const headers = { count: 7, isPaid: true, deep: { a: "b" } }
    await on(options, () =>
      Effect.gen(function* () {
        yield* telling(queue, told, { retry })
        yield* Effect.promise(() =>
          raw(url, async (channel) => {
            const all = { ...properties, headers, timestamp: 1_700_000_000, contentType: "text/plain" }
            channel.publish(exchange, "order.a", Buffer.from('"x"'), {
              ...all,
              persistent: true,
              userId: user,
              expiration: "60000"
            })
          })
        )
        yield* letter(queue)
      })
    )
    const expected = { exchange, routingKey: "order.a", ...properties }
    assert.deepStrictEqual(told.map(facts), [expected, expected, expected])
    for (const one of told) {
      assert.deepInclude(one, { timestamp: 1_700_000_000_000, contentType: "text/plain", persistent: true })
      assert.deepInclude(one!.headers, headers)
    }
    // A copy has neither: it would end too early, and it is not that user's.
    assert.deepInclude(told[0], { expiration: "60000", userId: user })
    assert.deepInclude(told[2], { expiration: undefined, userId: undefined })
  })

  test("are there for a message that was sent to its queue, with a delay or without", async () => {
    const queue = queueName("plain")
    const told: Array<RabbitMqNative.RabbitMqNative | undefined> = []
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* telling(queue, told, { retry: RetryPolicy.make({ maxRetries: 0 }) })
        yield* send(queue, properties)
        yield* send(queue, properties, { delay: 40 })
        yield* until("both", () => told.length === 2)
      })
    )
    const expected = { exchange: "", routingKey: queue, ...properties }
    assert.deepStrictEqual(told.map(facts), [expected, expected])
  })

  test("show the encoding of the body as a header, and take it from there", async () => {
    const queue = queueName("encoded")
    const seen: Array<unknown> = []
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, { retry: RetryPolicy.make({ maxRetries: 0 }) }, (message) => {
          seen.push([message.headers["content-encoding"], RabbitMqNative.of(message)?.contentEncoding])
        })
        const producer = yield* Producer.make<string>(queue)
        yield* producer.send("x", { headers: { "content-encoding": "identity" } })
        yield* Effect.promise(() =>
          raw(
            url,
            async (channel) => void channel.sendToQueue(queue, Buffer.from("1"), { contentEncoding: "identity" })
          )
        )
        yield* until("both", () => seen.length === 2)
      })
    )
    assert.deepStrictEqual(seen, [
      ["identity", "identity"],
      ["identity", "identity"]
    ])
  })

  test.each([true, false])(
    "of an expired message are those of its letter, which can be redriven (by an exchange: %s)",
    async (isByExchange) => {
      const { exchange, options, queue } = topic()
      const by = isByExchange ? { exchange, routingKey: "order.late" } : {}
      const [expected, key] = isByExchange ? [exchange, "order.late"] : ["", queue]
      await on(options, () =>
        Effect.gen(function* () {
          yield* Effect.scoped(Consumer.start(queue, {}, () => {}))
          yield* send(queue, { expiration: 1, ...by }, { id: "late" })
          // Browsed twice, because a browser may put another in its place.
          for (let times = 0; times < 2; times++) {
            const late = yield* letter(queue)
            assert.deepInclude(RabbitMqNative.of(late), { exchange: expected, routingKey: key })
            assert.deepInclude(late.origin, { queue, reason: "too-old" })
          }
          const letters = yield* DeadLetters.make(`${queue}.dlq`)
          assert.deepInclude(yield* letters.redrive(), { redriven: 1, unknownOrigin: 0 })
        })
      )
      assert.deepStrictEqual(await drainIds(url, queue), ["late"])
    }
  )

  test.runIf(managementUrl)("a foreign user id of a user who may take the part of others is taken", async () => {
    const [queue, username] = [queueName("users"), queueName("user")]
    const login = await readerAndWriter(managementUrl!, username, "impersonator")
    await permit(managementUrl!, username, ".*")
    await on({ url, ...login }, () => send(queue, { userId: "somebody" }))
    const told = await raw(url, (channel) => channel.get(queue, { noAck: true }))
    assert.strictEqual(told && told.properties.userId, "somebody")
  })
})

const nested = (levels: number): Record<string, unknown> => (levels === 0 ? {} : { a: nested(levels - 1) })

describe("wishes that cannot be fulfilled", () => {
  const refused: ReadonlyArray<readonly [unknown, string]> = [
    [{ exchang: "a" }, "RabbitMqNative.make: unknown option exchang. Did you mean exchange?"],
    [{ exchange: "" }, 'RabbitMqNative.make: exchange "" needs a routingKey'],
    [{ exchange: "ü".repeat(128) }, "RabbitMqNative.make: exchange must be text of at most 255 bytes"],
    [{ routingKey: "a" }, "RabbitMqNative.make: routingKey is for an exchange. Name the exchange as well"],
    [{ mandatory: false }, "RabbitMqNative.make: mandatory is for an exchange. Name the exchange as well"],
    [{ priority: 256 }, "RabbitMqNative.make: priority must be a whole number from 0 to 255, got 256"],
    [{ expiration: 0 }, "RabbitMqNative.make: expiration must be"],
    [{ headers: { "x-death": [] } }, "headers.x-death is a header of the server or of Requeue"],
    [{ headers: { requeue: "{}" } }, "headers.requeue is a header of the server or of Requeue"],
    [{ headers: "a" }, "headers must be an object of headers"],
    [{ headers: { rate: 1 / 0 } }, "headers.rate must be text, a finite number"],
    [{ headers: { a: [{ b: Number.NaN }] } }, "headers.a[0].b must be text, a finite number"],
    [{ headers: { a: Symbol("a") } }, "headers.a must be text"],
    [{ headers: { a: () => {} } }, "headers.a must be text"],
    [{ headers: { a: new Map() } }, "headers.a must be text"],
    [{ headers: { a: new Date(Number.NaN) } }, "headers.a must be a date since 1970"],
    [{ headers: { a: { "!": "double", value: 1 / 0 } } }, 'headers.a has a member "!"'],
    [{ headers: { ["x".repeat(256)]: 1 } }, "headers has an invalid name"],
    [{ headers: JSON.parse('{"a":{"__proto__":1}}') }, "headers.a has an invalid name"],
    [{ headers: nested(40) }, "nested too deep: at most 32 levels"],
    [
      {
        get exchange() {
          throw new Error("no")
        }
      },
      "RabbitMqNative.make: exchange must be a plain property, got a getter"
    ],
    [undefined, "RabbitMqNative.make: options must be an object"]
  ]
  test.each(refused.map(([, message], at) => ({ message, at })))("$message", ({ at, message }) => {
    const options = refused[at]?.[0]
    assert.throws(() => RabbitMqNative.make(options as RabbitMqNative.Options), RangeError, message) // on purpose
  })

  test.each<[string, Producer.SendOptions, string]>([
    [
      "a delay before an exchange",
      { native: RabbitMqNative.make({ exchange: "amq.topic" }), delay: 10 },
      "cannot have a delay"
    ],
    ["a delay and an expiration", { native: RabbitMqNative.make({ expiration: 5 }), delay: 10 }, "cannot have a delay"],
    ["written by hand, and wrong", { native: { rabbitmq: { exchange: 7 } } }, "native.rabbitmq: exchange must be text"],
    [
      "values that AMQP lacks",
      { native: { rabbitmq: { headers: { a: 1 / 0 } } } },
      "native.rabbitmq: headers.a must be"
    ]
  ])("%s: nothing is sent", async (_, options, message) => {
    const queue = queueName("refused")
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* Effect.scoped(Consumer.start(queue, {}, () => {}))
        const producer = yield* Producer.make<string>(queue)
        const error = yield* Effect.flip(producer.send("x", options))
        assert.deepInclude(error, { reason: "Unsupported", queue })
        assert.include(String(error), message)
      })
    )
    assert.deepStrictEqual(await drainIds(url, queue), [])
  })

  test("by hand, and right: taken", async () => {
    const queue = queueName("hand")
    await on({ url }, () =>
      Effect.gen(function* () {
        yield* Effect.scoped(Consumer.start(queue, {}, () => {}))
        const producer = yield* Producer.make<string>(queue)
        yield* producer.send("x", { id: "a", native: { rabbitmq: { type: "order.paid" } } })
      })
    )
    assert.deepStrictEqual(await drainIds(url, queue), ["a"])
  })
})
