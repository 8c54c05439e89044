/** Brokers whose adapter is none of ours: named in the file, written into it, or handed to whoever loads it. */
import { MemoryBroker } from "@requeue/adapter-memory"
import type { Adapter } from "@requeue/core/port"
import { Broker, BrokerError, ConfigurationError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { inspect } from "node:util"
import { assert, describe, it, onTestFinished } from "vitest"
import { Configuration, defineConfig, loadConfig } from "../src/index.ts"
import { complaints, folder, sound } from "./folder.ts"

/** An adapter of somebody else, whose state must survive the way to it. */
class Redis implements Adapter.Adapter {
  readonly schemes = ["redis"]
  readonly asked: Array<unknown> = []
  readonly layer: Adapter.Adapter["layer"] = (url, options) => {
    this.asked.push([url.href, options])
    return MemoryBroker.layer()
  }
}

/** A module that is a config file, with an adapter that comes from elsewhere. */
const file = `export default { brokers: { main: { url: "redis://\${HOST}", adapter: globalThis.redis, database: 3 } } }`

const loaded = async (text: string, options: Configuration.Options) =>
  await loadConfig({ cwd: await folder({ "requeue.config.mjs": text }), ...options })

describe("an adapter", () => {
  it("stands in a file that is a module, as it is", async () => {
    const redis = new Redis()
    Object.assign(globalThis, { redis })
    const { connect } = await loaded(file, { environment: { HOST: "localhost" } })
    await (await connect()).close()
    assert.deepStrictEqual(redis.asked, [["redis://localhost", { database: 3 }]])
  })

  it("gets functions and instances as they are, among options with variables", async () => {
    const options = { credentials: () => ({ password: "p" }), client: new Redis(), nested: { handler: new Redis() } }
    const [redis, environment] = [new Redis(), { HOST: "localhost", P: "p" }]
    Object.assign(globalThis, { options })
    const text = `export default {
      brokers: { main: { url: "redis://\${HOST}", ...globalThis.options, tls: { passphrase: "\${P}", check: String } } }
    }`
    const { connect } = await loaded(text, { environment, adapters: [redis] })
    await (await connect()).close()
    assert.deepStrictEqual(redis.asked, [
      ["redis://localhost", { ...options, tls: { passphrase: "p", check: String } }]
    ])
    const [[, given]] = redis.asked as [[string, typeof options]]
    assert.strictEqual(given.client, options.client)
    assert.strictEqual(given.nested.handler, options.nested.handler)
  })

  it("gets the variables in objects of classes that have no methods, and others are no brokers", async () => {
    const redis = new Redis()
    class Plain {
      url = "redis://${HOST}"
    }
    class Other extends Plain {
      connect() {}
    }
    const options = { environment: { HOST: "localhost" }, adapters: [redis] }
    Object.assign(globalThis, { plain: new Plain(), other: new Other() })
    const { connect } = await loaded("export default { brokers: { main: globalThis.plain } }", options)
    await (await connect()).close()
    assert.deepStrictEqual(redis.asked, [["redis://localhost", {}]])
    const bad = await Promise.allSettled(
      ["{ brokers: { main: globalThis.other } }", "globalThis.other"].map((text) =>
        loaded(`export default ${text}`, options)
      )
    )
    assert.deepStrictEqual(
      bad.map((each) => each.status === "rejected" && String(each.reason)),
      [
        "ConfigFileError: requeue.config.mjs: brokers.main: must be a URL, or an object with a url and the adapter's options",
        "ConfigFileError: requeue.config.mjs: must be an object with brokers, policies or queues"
      ]
    )
  })

  it("of ours gets its function of credentials", async () => {
    const asked: Array<string | undefined> = []
    const server = createServer(({ headers }, response) => {
      asked.push(headers.authorization)
      response.writeHead(400).end()
    })
    await once(server.listen(0, "127.0.0.1"), "listening")
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo // it listens on a port
    Object.assign(globalThis, { credentials: async () => ({ accessKeyId: "AKIDMINE", secretAccessKey: "s" }) })
    const text = `export default {
      brokers: { main: { url: "sqs://127.0.0.1:\${PORT}?region=eu-west-1", credentials: globalThis.credentials } }
    }`
    const requeue = await (
      await loaded(text, { environment: { PORT: String(port) } })
    ).connect(undefined, { waitForBroker: 0 })
    await requeue.send("orders", 1).catch(() => {})
    await requeue.close()
    assert.include(asked[0], "AKIDMINE")
  })

  it.each(["password: undefined", "tls: { passphrase: undefined }"])(
    "gets no option that is missing: %s",
    async (option) => {
      const text = `export default { brokers: { main: { url: "redis://host", ${option} } } }`
      const error: unknown = await loaded(text, { environment: {} }).catch((reason: unknown) => reason)
      assert.include(String(error), `brokers.main.${option.split(":")[0]}: must be a value, got undefined`)
    }
  )

  it("has its type checked", () => {
    const { brokers } = defineConfig({ brokers: { main: { url: "redis:", adapter: new Redis(), database: 3 } } })
    assert.hasAllKeys(brokers, ["main"])
    defineConfig({ brokers: { main: { url: "redis:", credentials: async () => ({ password: "p" }) } } })
    // @ts-expect-error it has no layer
    defineConfig({ brokers: { main: { url: "redis:", adapter: { schemes: ["redis"] } } } })
  })

  it("is handed to whoever loads the file, for the brokers of its schemes", async () => {
    const redis = new Redis()
    const text = `export default { brokers: { main: "redis://localhost", other: "memory:" } }`
    const { connect } = await loaded(text, { environment: {}, adapters: [redis] })
    for (const broker of ["main", "other"]) await (await connect(broker)).close()
    assert.deepStrictEqual(redis.asked, [["redis://localhost", {}]])
  })

  it("is named in the file", async () => {
    const { find } = await sound(`brokers: { main: { url: "memory:", adapter: "@requeue/adapter-memory" } }`)
    const { adapter, scheme } = await Effect.runPromise(find())
    assert.deepStrictEqual([scheme, adapter.schemes], ["memory", ["memory"]])
  })

  it.each([
    ["{ url: 'memory:', adapter: 5 }", /brokers\.main\.adapter: must be the name of a package, or an adapter/],
    ["{ url: 'memory:', adapter: { schemes: [memory] } }", /brokers\.main\.adapter/]
  ])("of a broker %s is refused in a file of data", async (broker, message) => {
    const [first = ""] = await complaints(`brokers: { main: ${broker} }`)
    assert.match(first, message)
  })

  it("that is not installed is told at its place", async () => {
    const { find } = await sound(`brokers: { main: { url: "redis:", adapter: "@acme/requeue-redis" } }`)
    const { message } = await Effect.runPromise(Effect.flip(find()))
    assert.match(
      message,
      /brokers\.main\.url: the adapter for redis: is not installed\. Run: npm install @acme\/requeue-redis/
    )
  })

  it.each<readonly [string, Adapter.Adapter["layer"]]>([
    [
      "fails with what it was given",
      (url) =>
        Layer.effect(
          Broker.Broker,
          Effect.fail(
            new BrokerError.BrokerError({
              broker: "redis",
              operation: "connect",
              reason: "ConnectionFailed",
              detail: `cannot reach ${url.href}`,
              remedy: `Check ${url.password}`
            })
          )
        )
    ],
    [
      "throws it",
      (url) => {
        throw new Error(`no ${url.href}`)
      }
    ],
    [
      "refuses it",
      (url) =>
        Layer.effect(
          Broker.Broker,
          Effect.fail(
            new ConfigurationError.ConfigurationError({
              field: "url",
              detail: `bad ${url.href}`,
              remedy: `Change ${url.password}`
            })
          )
        )
    ],
    ["answers no Layer", (async (url: URL) => url) as never]
  ])("that %s shows no secret", async (_, layer) => {
    const environment = { PASSWORD: "hunter2hunter2" }
    const text = `export default { brokers: { main: "redis://me:\${PASSWORD}@host" } }`
    const { connect } = await loaded(text, { environment, adapters: [{ schemes: ["redis"], layer }] })
    const error: unknown = await connect(undefined, { waitForBroker: 0 }).catch((reason: unknown) => reason)
    assert.instanceOf(error, Error)
    assert.notInclude(inspect(error, { depth: 10 }), "hunter2")
  })

  it("that does not name a package is told at its place", async () => {
    const { find } = await sound(`brokers: { main: { url: "redis:", adapter: "./redis.js" } }`)
    const { message } = await Effect.runPromise(Effect.flip(find()))
    assert.match(message, /brokers\.main\.adapter: the value is not the name of a package/)
  })
})
