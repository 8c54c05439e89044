import { assert, describe, it } from "@effect/vitest"
import {
  Broker,
  BrokerError,
  ConfigurationError,
  Consumer,
  Health,
  Producer,
  Relay,
  RetryPolicy,
  Store,
  Transaction
} from "@requeue/core"
import { type Connection, KnownQueues, Log, Metadata, type Outgoing } from "@requeue/core/port"
import { connect } from "@requeue/core/promise"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import { MemoryBroker, MemoryTransaction } from "../src/index.ts"

const minute = 60_000
const quiet = Effect.provideService(References.MinimumLogLevel, "None")

const failure = (reason: BrokerError.Reason, entries?: ReadonlyArray<BrokerError.Entry>) =>
  new BrokerError.BrokerError({ broker: "memory", operation: "publish", reason, detail: "it is broken", entries })

/** A memory broker and a store beside it, both changed. */
const stored = Effect.fnUntraced(function* (
  changeBroker: (broker: Broker.Service) => Broker.Service = (broker) => broker,
  changeStore: (store: Broker.Service) => Broker.Service = (store) => store
) {
  const [alone, database] = yield* Effect.all([MemoryBroker.makeControlled(), MemoryBroker.makeControlled()])
  const layer = Store.layer(
    Layer.succeed(Broker.Broker, changeBroker(alone.broker)),
    Layer.succeed(Broker.Broker, changeStore(database.broker))
  )
  const broker = Context.get(yield* Layer.build(layer), Broker.Broker)
  const on = Effect.provideService(Broker.Broker, broker)
  const ready = (of: typeof alone, queue: string) =>
    Effect.map(of.control.snapshot(queue), ({ ready }) => ready.map(({ metadata }) => metadata.id))
  const send = (...ids: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const producer = yield* on(Producer.make("jobs"))
      yield* MemoryTransaction.runEffect((transaction) =>
        producer.within(transaction).sendBatch(ids.map((id) => ({ id, body: id })))
      )
    })
  return { alone, database, on, ready, send }
})

describe("a relay", () => {
  it.effect("waits while the broker cannot be reached, and uses up no attempt", () =>
    Effect.gen(function* () {
      let isDown = true
      const { alone, database, on, ready, send } = yield* stored((broker) => ({
        ...broker,
        publish: (messages) => (isDown ? Effect.fail(failure("ConnectionFailed")) : broker.publish(messages))
      }))
      yield* on(Relay.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }))
      yield* send("a", "b")
      yield* TestClock.adjust(60 * minute)
      assert.deepStrictEqual(yield* ready(alone, "jobs"), [])
      isDown = false
      yield* TestClock.adjust(minute)
      assert.deepStrictEqual(yield* ready(alone, "jobs"), ["a", "b"])
      assert.deepStrictEqual(yield* ready(database, `${Relay.queue}.dlq`), [])
    }).pipe(Effect.scoped, quiet)
  )

  it.effect("publishes again only what was not confirmed", () =>
    Effect.gen(function* () {
      let calls = 0
      const { alone, on, ready, send } = yield* stored((broker) => ({
        ...broker,
        publish: (messages) => {
          if (calls++ > 0) return broker.publish(messages)
          const lost = failure("Timeout")
          const entries = messages.map((_, index) =>
            index === 1 ? ({ status: "unknown", error: lost } as const) : ({ status: "sent" } as const)
          )
          return Effect.andThen(broker.publish([messages[0]!, messages[2]!]), Effect.fail(failure("Timeout", entries)))
        }
      }))
      yield* on(Relay.start())
      yield* send("a", "b", "c")
      yield* TestClock.adjust(minute)
      assert.deepStrictEqual([calls, yield* ready(alone, "jobs")], [2, ["a", "c", "b"]])
    }).pipe(Effect.scoped)
  )

  it.effect("dead-letters what the broker refuses, after its retries, and publishes the rest", () =>
    Effect.gen(function* () {
      const { alone, database, on, ready, send } = yield* stored((broker) => ({
        ...broker,
        publish: (messages) => {
          const errors = messages.map(({ metadata }) => (metadata.id === "b" ? failure("BodyTooLarge") : undefined))
          const passed = messages.filter(({ metadata }) => metadata.id !== "b")
          const error = BrokerError.ofBatch(errors)
          return Effect.andThen(broker.publish(passed), error === undefined ? Effect.void : Effect.fail(error))
        }
      }))
      yield* on(Relay.start())
      yield* send("a", "b", "c")
      yield* TestClock.adjust(minute)
      assert.deepStrictEqual(yield* ready(alone, "jobs"), ["a", "c"])
      assert.deepStrictEqual(yield* ready(database, `${Relay.queue}.dlq`), [])
      yield* TestClock.adjust(60 * minute)
      assert.deepStrictEqual(yield* ready(database, `${Relay.queue}.dlq`), ["b"])
    }).pipe(Effect.scoped, quiet)
  )

  it.effect.each([
    { of: "a batch", entries: undefined },
    { of: "each of its messages", entries: ["a", "b", "c"].map(() => ({ status: "failed" as const })) }
  ])("dead-letters only the message because of which the broker refuses $of", ({ entries }) =>
    Effect.gen(function* () {
      const { alone, database, on, ready, send } = yield* stored((broker) => ({
        ...broker,
        publish: (messages) =>
          messages.some(({ metadata }) => metadata.id === "b")
            ? Effect.fail(failure("Unsupported", entries))
            : broker.publish(messages)
      }))
      yield* on(Relay.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }))
      yield* send("a", "b", "c")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* ready(alone, "jobs"), ["a", "c"])
      assert.deepStrictEqual(yield* ready(database, `${Relay.queue}.dlq`), ["b"])
    }).pipe(Effect.scoped, quiet)
  )

  it.effect("dead-letters a message that names no queue", () =>
    Effect.gen(function* () {
      const { database, on, ready } = yield* stored()
      yield* on(Relay.start())
      const headers = [
        {},
        { "requeue-outbox": "{" },
        { "requeue-outbox": '{"queue":7}' },
        { "requeue-outbox": '{"queue":"jobs","key":""}' }
      ]
      for (const each of headers) yield* database.control.publishRaw(Relay.queue, new Uint8Array(1), each)
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* ready(database, `${Relay.queue}.dlq`)).length, headers.length)
    }).pipe(Effect.scoped, quiet)
  )

  it.effect("dead-letters what its broker cannot do, without a call", () =>
    Effect.gen(function* () {
      const { database, on, ready } = yield* stored(({ capabilities, ...broker }) => ({
        ...broker,
        capabilities: { ...capabilities, keyedOrder: false, fairShares: false },
        publish: () => Effect.die("it is called")
      }))
      yield* on(Relay.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }))
      for (const asked of ["key", "fairBy"])
        yield* database.control.publishRaw(Relay.queue, new Uint8Array(1), {
          "requeue-outbox": JSON.stringify({ queue: "jobs", [asked]: "a" })
        })
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* ready(database, `${Relay.queue}.dlq`)).length, 2)
    }).pipe(Effect.scoped, quiet)
  )

  it.effect("publishes no message that is for a broker of another kind, and lets other relays try it first", () =>
    Effect.gen(function* () {
      const { alone, database, on, ready } = yield* stored()
      yield* on(Relay.start())
      const header = JSON.stringify({ queue: "jobs", broker: "sqs" })
      yield* database.control.publishRaw(Relay.queue, new Uint8Array(1), { "requeue-outbox": header })
      yield* TestClock.adjust(minute)
      assert.deepStrictEqual((yield* ready(database, `${Relay.queue}.dlq`)).length, 0)
      yield* TestClock.adjust(60 * minute)
      assert.deepStrictEqual((yield* ready(database, `${Relay.queue}.dlq`)).length, 1)
      assert.deepStrictEqual(yield* ready(alone, "jobs"), [])
    }).pipe(Effect.scoped, quiet)
  )

  it.effect("has its defaults for options that are undefined, as those of the Promise API are", () =>
    Effect.gen(function* () {
      const { alone, on, ready, send } = yield* stored()
      yield* on(Relay.start({ batch: undefined, retry: undefined }))
      yield* send("a")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* ready(alone, "jobs"), ["a"])
    }).pipe(Effect.scoped)
  )

  it.effect("needs a store", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Relay.start())
      assert.match(error.message, /has no outbox.*connect\(url, \{ store/)
    }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer({ faults: { capabilities: { transactions: false } } })))
  )

  it.effect("is not needed on a broker with transactions", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Relay.start())
      assert.match(error.message, /has no outbox.*Start no relay/)
    }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
  )

  it.effect("publishes with the options of the send", () =>
    Effect.gen(function* () {
      const published: Array<Outgoing.Outgoing> = []
      const { database, on } = yield* stored((broker) => ({
        ...broker,
        publish: (messages) => Effect.sync(() => void published.push(...messages))
      }))
      yield* on(Relay.start())
      const { within } = yield* on(Producer.make("jobs"))
      const native = { rabbitmq: { priority: 5 } }
      yield* MemoryTransaction.runEffect((transaction) => within(transaction).send("a", { native }))
      const header = JSON.stringify({ queue: "jobs", create: false })
      yield* database.control.publishRaw(Relay.queue, new Uint8Array(1), { "requeue-outbox": header })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(
        published.map(({ create, native, queue }) => ({ queue, native, create })),
        [
          { queue: "jobs", native, create: undefined },
          { queue: "jobs", native: undefined, create: false }
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("logs an outage, not each failure", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make((line) => void lines.push(Log.toLine(line).message))
      let isDown = true
      const { on, send } = yield* stored((broker) => ({
        ...broker,
        publish: (messages) => (isDown ? Effect.fail(failure("ConnectionFailed")) : broker.publish(messages))
      }))
      const outage = Effect.gen(function* () {
        yield* send("a")
        isDown = true
        yield* TestClock.adjust(2 * minute)
        isDown = false
        yield* TestClock.adjust(minute)
      })
      yield* on(Relay.start()).pipe(Effect.provideService(References.CurrentLoggers, new Set([logger])))
      yield* outage
      const first = lines.filter((line) => /wait in the outbox/.test(line)).length
      yield* outage
      const second = lines.filter((line) => /wait in the outbox/.test(line)).length - first
      assert.deepStrictEqual([first, second], [2, 2])
    }).pipe(Effect.scoped)
  )
})

describe("health", () => {
  it.effect("has the store, and counts the outbox there", () =>
    Effect.gen(function* () {
      let connection: Connection.Connection = { state: "up", since: 1 }
      const { database, on } = yield* stored(undefined, (store) => ({ ...store, connection: () => connection }))
      const relay = yield* on(Relay.start({ concurrency: 1 }))
      relay.pause()
      yield* database.control.publishRaw(Relay.queue, new Uint8Array(1))
      const health = on(Health.check([relay]))
      const seen = yield* health
      assert.deepStrictEqual(seen.store, { broker: "memory", connection })
      assert.deepStrictEqual([seen.consumers[0]?.counts?.ready, Health.isReady(seen)], [1, true])
      connection = { state: "down", since: 2, because: "it is broken" }
      const lost = yield* health
      assert.deepStrictEqual([lost.store?.connection, lost.consumers[0]?.counts], [connection, undefined])
      assert.deepStrictEqual([lost.connection.state, Health.isReady(lost), Health.isLive(lost)], ["up", false, true])
    }).pipe(Effect.scoped)
  )
})

describe("an inbox", () => {
  const handle = (message: Parameters<typeof Transaction.within>[0]) =>
    MemoryTransaction.runEffect((transaction) => Transaction.within(message, transaction))

  it.effect("delays settlements while its database cannot be reached, and loses none", () =>
    Effect.gen(function* () {
      let isDown = true
      const { alone, on, ready } = yield* stored(undefined, (store) => ({
        ...store,
        inbox: {
          ...store.inbox!,
          recorded: (queue, ids) =>
            isDown ? Effect.fail(failure("ConnectionFailed")) : store.inbox!.recorded(queue, ids)
        }
      }))
      const events: Array<string> = []
      const onEvent = ({ _tag }: { readonly _tag: string }) => void events.push(_tag)
      const consumer = yield* on(
        Consumer.start("jobs", { onEvent, retry: RetryPolicy.make({ maxRetries: 0 }) }, handle)
      )
      yield* on(Effect.flatMap(Producer.make("jobs"), ({ send }) => send("a", { id: "a" })))
      yield* TestClock.adjust(10 * minute)
      const [degraded] = Health.degraded(yield* on(Health.check([consumer])))
      assert.match(String(degraded?.because), /other settlements: .*it is broken.*; /)
      assert.notInclude(events, "Succeeded")
      isDown = false
      yield* TestClock.adjust(10 * minute)
      assert.include(events, "Succeeded")
      assert.deepStrictEqual([yield* ready(alone, "jobs"), yield* ready(alone, "jobs.dlq")], [[], []])
    }).pipe(Effect.scoped, quiet)
  )

  it.effect("refuses a message whose id is only that of its content", () =>
    Effect.gen(function* () {
      const { on } = yield* stored()
      const errors: Array<string> = []
      yield* on(
        Consumer.start("jobs", { retry: RetryPolicy.make({ maxRetries: 0 }) }, (message) =>
          Effect.tapError(handle(message), (error) => Effect.sync(() => errors.push(error.message)))
        )
      )
      yield* on(Effect.flatMap(Producer.make("jobs"), ({ send }) => send("a", { id: "content-0123456789abcdef" })))
      yield* TestClock.adjust(1)
      assert.match(errors.join(), /has no id.*Let the producer set a message id/)
    }).pipe(Effect.scoped, quiet)
  )

  it.effect("refuses an id that its database cannot store, and does not ask for it", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const { alone, on, ready } = yield* stored(undefined, (store) => ({
        ...store,
        inbox: {
          ...store.inbox!,
          recorded: (queue, ids) => {
            asked.push(...ids)
            return store.inbox!.recorded(queue, ids)
          }
        }
      }))
      const errors: Array<string> = []
      yield* on(
        Consumer.start("jobs", { retry: RetryPolicy.make({ maxRetries: 0 }) }, (message) =>
          Effect.tapError(handle(message), (error) => Effect.sync(() => errors.push(error.message)))
        )
      )
      const foreign = (id: string): Outgoing.Outgoing => ({
        queue: "jobs",
        body: new TextEncoder().encode("1"),
        headers: {},
        delay: 0,
        metadata: Metadata.make(id, 0)
      })
      yield* alone.broker.publish(["a\0", "\ud800"].map(foreign))
      yield* TestClock.adjust(1)
      assert.match(errors.join(), /NUL or a broken surrogate.*NUL or a broken surrogate/)
      assert.deepStrictEqual([asked, yield* ready(alone, "jobs.dlq")], [[], ["a\0", "\ud800"]])
    }).pipe(Effect.scoped, quiet)
  )

  it.effect("forgets a message after its retention, not before", () =>
    Effect.gen(function* () {
      const { database, on } = yield* stored()
      const { inbox } = database.broker
      yield* on(Consumer.start("jobs", {}, handle))
      yield* on(Effect.flatMap(Producer.make("jobs"), ({ send }) => send("a", { id: "a" })))
      const others = Array.from({ length: 2500 }, (_, index) => `other${index}`)
      yield* MemoryTransaction.runEffect((transaction) => inbox!.record(transaction, "jobs", others))
      yield* TestClock.adjust(30 * 24 * 60 * minute)
      assert.deepStrictEqual(yield* inbox!.recorded("jobs", ["a"]), ["a"])
      yield* TestClock.adjust(minute)
      // In steps, between which other statements run.
      assert.strictEqual((yield* inbox!.recorded("jobs", ["a", ...others])).length, 1501)
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(yield* inbox!.recorded("jobs", ["a", ...others]), [])
    }).pipe(Effect.scoped)
  )

  it.effect("fails a commit if another transaction has recorded the message meanwhile", () =>
    Effect.gen(function* () {
      const { database } = yield* stored()
      const { record } = database.broker.inbox!
      const [one, other] = [MemoryTransaction.make(), MemoryTransaction.make()]
      assert.deepStrictEqual(yield* record(one, "jobs", ["a"]), [])
      assert.deepStrictEqual(yield* record(other, "jobs", ["a"]), [])
      one.commit()
      assert.throws(other.commit, /another transaction has done the message/)
      assert.deepStrictEqual(yield* record(MemoryTransaction.make(), "jobs", ["a", "b"]), ["a"])
    }).pipe(Effect.scoped)
  )
})

describe("a store", () => {
  it.effect("knows the dead-letter queues that its broker knows", () =>
    Effect.gen(function* () {
      const { alone, on } = yield* stored()
      KnownQueues.add(alone.broker, "jobs", RetryPolicy.make({ deadLetter: "failed" }))
      assert.deepStrictEqual(KnownQueues.deadLetterQueues(yield* on(Broker.Broker), "jobs"), ["failed"])
    }).pipe(Effect.scoped)
  )

  it.effect("must have an inbox", () =>
    Effect.gen(function* () {
      const without = MemoryBroker.layer({ faults: { capabilities: { transactions: false } } })
      const error = yield* Effect.flip(Layer.build(Store.layer(MemoryBroker.layer(), without)))
      assert.instanceOf(error, ConfigurationError.ConfigurationError)
      assert.match(error.message, /has no inbox.*postgres/)
    }).pipe(Effect.scoped)
  )

  it.effect("refuses native options that JSON would change or cannot write", () =>
    Effect.gen(function* () {
      const { on } = yield* stored()
      const { within } = yield* on(Producer.make("jobs"))
      const refused = (key: unknown) =>
        Effect.flip(within(MemoryTransaction.make()).send("a", { native: { rabbitmq: { key } } }))
      assert.match((yield* refused(new Map())).message, /native\.rabbitmq\.key is a Map/)
      assert.match((yield* refused(1n)).message, /native\.rabbitmq\.key is a BigInt/)
    }).pipe(Effect.scoped)
  )

  it.effect("that does not keep the order of keys refuses a key, and takes fairBy, which its rows do not have", () =>
    Effect.gen(function* () {
      const { on } = yield* stored(undefined, ({ capabilities, ...store }) => ({
        ...store,
        capabilities: { ...capabilities, keyedOrder: false, fairShares: false }
      }))
      const { send } = (yield* on(Producer.make("jobs"))).within(MemoryTransaction.make())
      const { message } = yield* Effect.flip(send("a", { key: "k" }))
      assert.match(
        message,
        /within on queue requeue\.outbox: Unsupported: .*order of messages with a key\. Send without key/
      )
      yield* send("b", { fairBy: "f" })
    }).pipe(Effect.scoped)
  )

  it("works with promises", async () => {
    await using requeue = await connect("memory:", { store: "memory:", inboxRetention: "7 days" })
    await using relay = await requeue.relay({ concurrency: 2 })
    const done = Promise.withResolvers<unknown>()
    await requeue.consume("receipts", {}, ({ body }) => done.resolve(body))
    await requeue.consume("payments", {}, (message) =>
      MemoryTransaction.run(async (transaction) => {
        await message.within(transaction)
        await requeue.within(transaction).send("receipts", { of: message.id })
      })
    )
    await requeue.send("payments", {}, { id: "p1" })
    assert.deepStrictEqual(await done.promise, { of: "p1" })
    assert.strictEqual(relay.queue, Relay.queue)
  })

  it("refuses wrong options", async () => {
    const wrong: ReadonlyArray<readonly [object, RegExp]> = [
      [{ store: 7 }, /store/],
      [{ store: "memory:", inboxRetention: "1 minute" }, /inboxRetention/],
      [{ inboxRetention: "7 days" }, /inboxRetention has no effect without store\. Add store/],
      [{ storeNamespace: "eu" }, /storeNamespace has no effect without store\. Add store/],
      [{ store: "memory:", storeNamespace: "eu.dlq" }, /storeNamespace must be 1 to 64 letters/]
    ]
    for (const [options, expected] of wrong) {
      const error = await connect("memory:", options).catch((caught: unknown) => caught)
      assert.instanceOf(error, RangeError)
      assert.match(error.message, expected)
    }
    const misplaced: ReadonlyArray<readonly [NonNullable<Parameters<typeof connect>[1]>["store"], string]> = [
      ["nowhere:x", "store"],
      ["amqp//x:", "store"],
      ["memory:?maxMessages=many", "store.maxMessages"]
    ]
    for (const [store, field] of misplaced) {
      const error = await connect("memory:", { store }).catch((caught: unknown) => caught)
      assert.instanceOf(error, ConfigurationError.ConfigurationError)
      assert.strictEqual(error.field, field)
    }
    await using requeue = await connect("memory:", { store: "memory:" })
    const relay = await requeue.relay({ concurrency: 0 }).catch((caught: unknown) => caught)
    assert.instanceOf(relay, RangeError)
  })
})
