/** Adapters that are none of ours: handed over, named as a package, or found by their scheme. */
import { assert, describe, it } from "@effect/vitest"
import { Adapters } from "@requeue/core"
import { Adapter } from "@requeue/core/port"
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
      /^url: no adapter serves the scheme kafka:\. Known schemes: memory:, .*For another adapter, set the option adapter to the name of its package/
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
      "the value is not an adapter: an adapter has schemes and a layer. Pass what the adapter's package exports as adapter"
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
      "adapters: must be a list. Pass [adapter]"
    )
)

describe("an adapter that is named", () => {
  const source = `export const adapter = { schemes: ["redis"], layer: () => { throw new Error("the adapter was asked") } }`
  const asked =
    "ConfigurationError: adapter: the adapter failed: the adapter was asked. Report this to the adapter's authors"
  const packages = {
    "@acme/requeue-redis": source,
    "@acme/brokers": "",
    "@acme/brokers/redis.js": source,
    "@acme/nothing": "export const broker = 1",
    "requeue-adapter-redis": source,
    "requeue-adapter-constructor": source.replace("redis", "constructor")
  }
  const cases: ReadonlyArray<readonly [how: string, address: unknown, expected: string]> = [
    ["by its package", { url: "redis://localhost", adapter: "@acme/requeue-redis" }, asked],
    ["by a module of its package", { url: "redis://localhost", adapter: "@acme/brokers/redis.js" }, asked],
    ["by its URL's scheme, as requeue-adapter-SCHEME", "redis://localhost", asked],
    ["by a scheme that objects have as a member", "constructor://x", asked],
    [
      "and not installed: how to install it",
      { url: "redis://localhost", adapter: "@acme/requeue-other" },
      "ConfigurationError: url: the adapter for redis: is not installed. Run: npm install @acme/requeue-other. In a bundle, pass the package's adapter: { adapters: [adapter] }"
    ],
    [
      "and exports none",
      { url: "redis://localhost", adapter: "@acme/nothing" },
      "ConfigurationError: adapter: @acme/nothing exports no adapter. Set adapter to a package that exports an adapter as adapter"
    ],
    [
      "and serves another scheme",
      { url: "kafka://localhost", adapter: "@acme/requeue-redis" },
      "ConfigurationError: url: @acme/requeue-redis does not serve the scheme kafka:. Use a URL with redis:, or another adapter"
    ]
  ]

  it("is found in the program's packages, or the error says what to do", async () => {
    const said = await program(packages, ...cases.map(([, address]) => JSON.stringify(address)))
    const lines = said.split("\n")
    assert.deepStrictEqual(
      cases.map(([how], index) => [how, lines[index]]),
      cases.map(([how, , expected]) => [how, expected])
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
      "adapter: the value is not the name of a package. Set adapter to the name of a package, such as @acme/requeue-redis"
    )
  )
})
