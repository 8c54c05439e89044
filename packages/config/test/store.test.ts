/** A broker of the file that has a database of the file beside it. */
import { MemoryBroker, MemoryTransaction } from "@requeue/adapter-memory"
import { Broker, Relay } from "@requeue/core"
import { isReady, type Requeue } from "@requeue/core/promise"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { assert, describe, it } from "vitest"
import { ConfigFileError, type Configuration, loadConfig } from "../src/index.ts"
import { folder, sound } from "./folder.ts"

const yaml = `
broker: live
brokers:
  live: { url: "memory:", store: db, inboxRetention: 60 days }
  db: "memory:?maxBodySize=\${SIZE}"
queues:
  jobs: {}
`

const loaded = async (text: string, options: Configuration.Options = {}) =>
  loadConfig({ cwd: await folder({ "requeue.config.yaml": text }), environment: { SIZE: "500" }, ...options })

const outbox = (requeue: Requeue) => requeue.health().then(({ store }) => store?.broker)

const failure = (work: Promise<unknown>) =>
  work.then(
    () => assert.fail("it was accepted"),
    (error: unknown) => error
  )

describe("a store of the file", () => {
  it("is connected with its broker", async () => {
    const { connect } = await loaded(yaml)
    await using requeue = await connect()
    await using _ = await requeue.relay()
    const done = Promise.withResolvers<unknown>()
    await requeue.consume("jobs", {}, ({ body }) => done.resolve(body))
    await MemoryTransaction.run((transaction) => requeue.within(transaction).send("jobs", { id: 1 }))
    assert.deepStrictEqual(await done.promise, { id: 1 })
    assert.isTrue(isReady(await requeue.health()))
  })

  it("is one of the layer, for programs with Effect, and not of the broker alone", async () => {
    const { alone, layer, store } = await sound(yaml, { SIZE: "500" })
    const inboxOf = (broker: ReturnType<typeof layer>) =>
      Effect.runPromise(
        Effect.scoped(
          Effect.map(Layer.build(broker), (context) => Context.get(context, Broker.Broker).store !== undefined)
        )
      )
    assert.deepStrictEqual([await inboxOf(layer()), await inboxOf(alone())], [true, false])
    assert.deepStrictEqual([store(), store("live"), store("db")], ["db", "db", undefined])
  })

  it("gives way to one of the call", async () => {
    const { connect } = await loaded(yaml)
    const renamed = Layer.effect(
      Broker.Broker,
      Effect.map(Broker.Broker, (broker) => ({ ...broker, capabilities: { ...broker.capabilities, broker: "mine" } }))
    ).pipe(Layer.provide(MemoryBroker.layer()))
    await using own = await connect("live", { store: renamed })
    await using files = await connect("live")
    assert.deepStrictEqual([await outbox(own), await outbox(files)], ["mine", "memory"])
    const error = await failure(connect("live", { inboxRetention: "1 minute" }))
    assert.match(String(error), /connect: inboxRetention must be a duration of at least 1h/)
  })

  it("needs its secrets", async () => {
    const { connect } = await loaded(yaml, { environment: {} })
    const error = await failure(connect("live"))
    assert.match(String(error), /brokers\.db\.url: the environment variable SIZE is not set/)
  })

  it("must have an inbox", async () => {
    const layer = () => MemoryBroker.layer({ faults: { capabilities: { transactions: false } } })
    const text = yaml.replace("memory:?", "plain:?")
    const { connect } = await loaded(text, { adapters: [{ schemes: ["plain"], layer }] })
    const error = await failure(connect("live"))
    assert.instanceOf(error, ConfigFileError)
    assert.match(error.message, /^requeue\.config\.yaml: brokers\.live\.store: the broker memory has no inbox/)
  })
})

describe("an outbox", () => {
  const brokers = (text: string) => `broker: a\nbrokers: { ${text}, x: "memory:", y: "memory:" }`

  it("is a queue of the store, with the policy of the relay", async () => {
    const { queues, queuesOn } = await sound(yaml, { SIZE: "500" })
    assert.deepStrictEqual(Object.keys(queues), ["jobs", Relay.queue])
    const [queue, ...others] = queuesOn("db")
    assert.deepStrictEqual([queue?.name, queue?.options, others], [Relay.queue, Relay.defaults, []])
  })

  it("is one of each store", async () => {
    const { queues } = await sound(brokers('a: { url: "memory:", store: x }, b: { url: "memory:", store: y }'))
    const found = Object.values(queues).map(({ broker, name }) => [broker, name])
    assert.deepStrictEqual(found, [
      ["x", Relay.queue],
      ["y", Relay.queue]
    ])
  })

  it("is one of each namespace", async () => {
    const { queues } = await sound(
      brokers('a: { url: "memory:", store: x }, b: { url: "memory:", store: x, storeNamespace: eu }')
    )
    const found = Object.values(queues).map(({ broker, name }) => [broker, name])
    assert.deepStrictEqual(found, [
      ["x", Relay.queue],
      ["x", Relay.queueOf("eu")]
    ])
  })

  it("has the messages of its namespace", async () => {
    const text = yaml.replace("store: db", "store: db, storeNamespace: eu")
    const { connect } = await loaded(text)
    await using requeue = await connect()
    await using relay = await requeue.relay()
    const done = Promise.withResolvers<unknown>()
    await requeue.consume("jobs", {}, ({ body }) => done.resolve(body))
    await MemoryTransaction.run((transaction) => requeue.within(transaction).send("jobs", { id: 1 }))
    assert.deepStrictEqual([await done.promise, relay.queue], [{ id: 1 }, Relay.queueOf("eu")])
    const { layer } = await sound(text, { SIZE: "500" })
    const broker = await Effect.runPromise(Effect.scoped(Layer.build(layer())))
    assert.strictEqual(Context.get(broker, Broker.Broker).outbox, Relay.queueOf("eu"))
  })

  it("can be a queue of the file", async () => {
    const text = `${brokers("a: { url: 'memory:', store: x }")}\nqueues: { out: { broker: x, name: ${Relay.queue} } }`
    assert.deepStrictEqual(Object.keys((await sound(text)).queues), ["out"])
  })
})
