import { assert, describe, it } from "@effect/vitest"
import { Adapters, Broker, ConfigurationError } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { adapter, MemoryBroker } from "../src/index.ts"
import { send } from "./harness.ts"

const open = (url: string) => Broker.Broker.pipe(Effect.provide(adapter.layer(new URL(url))))

describe("adapter", () => {
  it("serves memory:", () => assert.deepStrictEqual(adapter.schemes, ["memory"]))

  it.effect.each(["memory:", "memory://", "memory:?maxMessages=10&maxBodySize=5"])("opens %s", (url) =>
    Effect.map(open(url), ({ capabilities }) => assert.strictEqual(capabilities.broker, "memory"))
  )

  it.effect("takes limits from the query", () =>
    Effect.gen(function* () {
      const broker = yield* open("memory:?maxBodySize=5")
      assert.strictEqual(broker.capabilities.maxBodySize, 5)
    })
  )

  it.effect.each([
    ["memory:?maxMessages=0", "maxMessages"],
    ["memory:?maxMessages=1.5", "maxMessages"],
    ["memory:?maxMessages=", "maxMessages"],
    ["memory:?maxMessages=1&maxMessages=2", "url"],
    ["memory:?maxBodySize=-1", "maxBodySize"],
    ["memory:?maxBodySize=99999999999999999999", "maxBodySize"],
    ["memory:?max=1", "url"],
    ["memory:maxMessages=1", "url"],
    ["memory://localhost", "url"]
  ] as const)("refuses %s", ([url, field]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(open(url))
      assert.instanceOf(error, ConfigurationError.ConfigurationError)
      assert.strictEqual(error.field, field)
    })
  )
})

describe("options beside the URL", () => {
  const beside = (options: Readonly<Record<string, unknown>>) =>
    Broker.Broker.pipe(Effect.provide(Adapters.layer({ url: "memory:?maxBodySize=5", ...options })))

  it.effect("beat those in it", () =>
    Effect.map(beside({ maxBodySize: 7 }), ({ capabilities }) => assert.strictEqual(capabilities.maxBodySize, 7))
  )

  it.effect("can be text, as environment variables are", () =>
    Effect.map(beside({ maxBodySize: "7" }), ({ capabilities }) => assert.strictEqual(capabilities.maxBodySize, 7))
  )

  it.effect("are refused by name", () =>
    Effect.gen(function* () {
      const unknown = yield* Effect.flip(beside({ maxBodySise: 7 }))
      assert.include(unknown.message, "maxBodySise (broker memory): unknown option. Did you mean maxBodySize?")
      const wrong = yield* Effect.flip(beside({ maxBodySize: 0 }))
      assert.include(wrong.message, "maxBodySize (broker memory): must be a whole number >= 1 or Infinity, got 0")
    })
  )

  it.effect("come from Effect's Config as well", () => {
    const config = ConfigProvider.layer(ConfigProvider.fromUnknown({ BROKER_URL: "memory:?maxBodySize=9" }))
    const layer = Adapters.layerConfig(Config.Redacted("BROKER_URL")).pipe(Layer.provide(config))
    return Effect.map(Effect.provide(Broker.Broker, layer), ({ capabilities }) =>
      assert.strictEqual(capabilities.maxBodySize, 9)
    )
  })

  it("are options of connect", async () => {
    const requeue = await connect({ url: "memory:", maxMessages: 5 })
    assert.strictEqual(requeue.broker, "memory")
    await requeue.close()
  })
})

describe("make", () => {
  it.each([0, -1, 1.5, Number.NaN])("refuses %d messages at once", (maxMessages) =>
    assert.throws(() => MemoryBroker.make({ maxMessages }), RangeError, "MemoryBroker.make: maxMessages")
  )

  it.effect("is a layer as well", () =>
    Effect.gen(function* () {
      const broker = yield* Broker.Broker
      yield* send(broker, "q", ["a"])
      assert.strictEqual((yield* broker.admin.counts("q")).ready, 1)
    }).pipe(Effect.provide(MemoryBroker.layer()))
  )
})
