/** Adapters that are none of ours: handed over, named as a package, or found by their scheme. */
import { assert, describe, it } from "@effect/vitest"
import { Adapter, Adapters } from "@requeue/core"
import { type ConfigurationError, connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as MemoryBroker from "../src/MemoryBroker.ts"
import { program } from "./program.ts"

/** An adapter of somebody else, which remembers what it was asked for. */
const acme = (...schemes: ReadonlyArray<string>) => {
  const asked: Array<readonly [string, Adapter.Options | undefined]> = []
  const adapter: Adapter.Adapter = {
    schemes,
    layer: (url, options) => {
      asked.push([url.href, options])
      return MemoryBroker.layer()
    }
  }
  return { adapter, asked }
}

const refusal = (address: unknown, adapters?: ReadonlyArray<Adapter.Adapter>): Promise<ConfigurationError> =>
  Effect.runPromise(Effect.flip(Adapters.find(address as string, { adapters })))

describe("an adapter that is handed over", () => {
  it("serves its scheme, beside the address", async () => {
    const { adapter, asked } = acme("redis", "rediss")
    await (await connect("rediss://localhost/2", { adapters: [acme("kafka").adapter, adapter] })).close()
    await (await connect({ url: "redis://localhost", database: 3 }, { adapters: [adapter] })).close()
    assert.deepStrictEqual(asked, [
      ["rediss://localhost/2", {}],
      ["redis://localhost", { database: 3 }]
    ])
  })

  it("serves its scheme, in the address, before those beside it and before ours", async () => {
    const [inside, beside] = [acme("memory"), acme("memory")]
    await (await connect({ url: "memory:", adapter: inside.adapter }, { adapters: [beside.adapter] })).close()
    assert.deepStrictEqual([inside.asked, beside.asked], [[["memory:", {}]], []])
  })

  it("is no help for another scheme", async () => {
    const { adapter } = acme("redis", "rediss")
    assert.strictEqual(
      (await refusal({ url: "kafka://user:hunter2@localhost", adapter })).message,
      "url: the adapter does not serve the scheme kafka:. Use a URL with redis:, rediss:, or another adapter"
    )
    const { message } = await refusal("kafka://user:hunter2@localhost", [adapter])
    assert.match(
      message,
      /^url: no adapter serves the scheme kafka:\. Use one of memory:, .*or name the package of another adapter as adapter/
    )
    assert.notInclude(message, "hunter2")
  })

  it.each<[string, unknown]>([
    ["a module", { adapter: acme("redis").adapter }],
    ["a Layer", MemoryBroker.layer()],
    ["schemes alone", { schemes: ["redis"] }],
    ["a scheme that is no text", { schemes: [1], layer: () => MemoryBroker.layer() }],
    ["nothing", null]
  ])("must be one: %s is none", async (_, adapter) => {
    const what =
      "it is no adapter: an adapter has schemes and a layer. Pass what the adapter's package exports as adapter"
    assert.strictEqual((await refusal({ url: "redis://localhost", adapter })).message, `adapter: ${what}`)
    const adapters = [adapter as Adapter.Adapter]
    assert.strictEqual((await refusal("redis://localhost", adapters)).message, `adapters: ${what}`)
  })
})

it.each([[null], [{}], [acme("redis").adapter], [new Set()]])(
  "adapters that are no list are refused: %o",
  async (adapters) =>
    assert.strictEqual(
      (await refusal("redis://localhost", adapters as never)).message,
      "adapters: they must be a list. Pass [adapter]"
    )
)

describe("an adapter that is named", () => {
  const source = `export const adapter = { schemes: ["redis"], layer: () => { throw new Error("the adapter was asked") } }`
  const asked =
    "ConfigurationError: adapter: the adapter failed: the adapter was asked. Report this to the adapter's authors"
  const connecting = (address: unknown) => JSON.stringify(address)

  it("by its package", async () => {
    const address = connecting({ url: "redis://localhost", adapter: "@acme/requeue-redis" })
    assert.strictEqual(await program({ "@acme/requeue-redis": source }, address), asked)
  })

  it("by a module of its package", async () => {
    const address = connecting({ url: "redis://localhost", adapter: "@acme/brokers/redis.js" })
    assert.strictEqual(await program({ "@acme/brokers": "", "@acme/brokers/redis.js": source }, address), asked)
  })

  it("by its URL's scheme, as requeue-adapter-SCHEME", async () => {
    assert.strictEqual(await program({ "requeue-adapter-redis": source }, connecting("redis://localhost")), asked)
  })

  it("by a scheme that objects have as a member", async () => {
    const named = source.replace("redis", "constructor")
    assert.strictEqual(await program({ "requeue-adapter-constructor": named }, connecting("constructor://x")), asked)
  })

  it("and not installed: how to install it", async () => {
    const address = connecting({ url: "redis://localhost", adapter: "@acme/requeue-redis" })
    assert.strictEqual(
      await program({}, address),
      "ConfigurationError: url: the adapter for redis: is not installed. Run: npm install @acme/requeue-redis. In a bundle, pass what it exports: { adapters: [adapter] }"
    )
  })

  it("and exports none", async () => {
    const address = connecting({ url: "redis://localhost", adapter: "@acme/requeue-redis" })
    assert.strictEqual(
      await program({ "@acme/requeue-redis": "export const broker = 1" }, address),
      "ConfigurationError: adapter: @acme/requeue-redis exports no adapter. Name a package that exports one as adapter"
    )
  })

  it("and serves another scheme", async () => {
    const address = connecting({ url: "kafka://localhost", adapter: "@acme/requeue-redis" })
    assert.strictEqual(
      await program({ "@acme/requeue-redis": source }, address),
      "ConfigurationError: url: @acme/requeue-redis does not serve the scheme kafka:. Use a URL with redis:, or another adapter"
    )
  })

  it.each([
    "./adapter.js",
    "/tmp/adapter.js",
    "file:///adapter.js",
    "data:text/javascript,",
    "",
    "../node_modules/x",
    "x/../../evil.cjs",
    "x/./y",
    "@a/../x",
    ".x"
  ])("%j is no package, and not imported", async (adapter) =>
    assert.strictEqual(
      (await refusal({ url: "redis://localhost", adapter })).message,
      "adapter: it is not the name of a package. Name a package, such as @acme/requeue-redis"
    )
  )
})
