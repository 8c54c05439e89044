import { Delay } from "@requeue/core"
import * as Effect from "effect/Effect"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, expect, it } from "vitest"
import type { ConsumeOptions } from "@requeue/core/promise"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import { Configuration, ConfigFileError, loadConfig } from "../src/index.ts"
import { folder, sound } from "./folder.ts"

const json = JSON.stringify({ brokers: { main: "memory:" }, queues: { orders: { concurrency: 3 } } })

describe("the file", () => {
  it.each([
    [{ fil: "x.yaml" }, "unknown option fil. Did you mean file?"],
    [{ environment: "production" }, 'environment must be an object of text, got "production"'],
    ["x.yaml", 'options must be an object, got "x.yaml". Allowed: file, environment, adapters, cwd']
  ] as ReadonlyArray<readonly [any, string]>)("is not looked for with wrong options: %o", async (options, message) => {
    // Any, because a compiler would refuse them.
    const errors = [
      await loadConfig(options).catch((error: unknown) => error),
      await Effect.runPromise(Configuration.load(options)).catch((error: unknown) => error)
    ]
    assert.deepStrictEqual(errors.map(String), [
      `RangeError: loadConfig: ${message}`,
      `RangeError: Configuration.load: ${message}`
    ])
  })

  it.each([
    ["requeue.config.ts", `const config: { brokers: object } = ${json}\nexport default config`],
    ["requeue.config.mts", `export default ${json} as object`],
    ["requeue.config.mjs", `export default ${json}`],
    ["requeue.config.json", json],
    ["requeue.config.json", `\uFEFF${json}`],
    ["requeue.config.yaml", `\uFEFF${json}`],
    ["requeue.config.yaml", "brokers:\n  main: 'memory:'\nqueues:\n  orders:\n    concurrency: 3\n"],
    ["requeue.config.yml", json]
  ])("can be %s", async (name, text) => {
    const cwd = await folder({ [name]: text })
    const { file, queues } = await Effect.runPromise(Configuration.load({ cwd, environment: {} }))
    assert.strictEqual(file, name)
    assert.strictEqual(queues["orders"]?.options.concurrency, 3)
  })

  it("is found from a folder below it", async () => {
    const above = await folder({ "requeue.config.json": json })
    const cwd = join(above, "a", "b")
    await mkdir(cwd, { recursive: true })
    const { file } = await Effect.runPromise(Configuration.load({ cwd, environment: {} }))
    assert.strictEqual(file, join("..", "..", "requeue.config.json"))
  })

  it("can be named", async () => {
    const cwd = await folder({ "other.yaml": json })
    const { file } = await Effect.runPromise(Configuration.load({ cwd, file: "other.yaml", environment: {} }))
    assert.strictEqual(file, "other.yaml")
  })

  it.each<readonly [Record<string, string>, string | undefined, RegExp]>([
    [
      {},
      undefined,
      /^requeue\.config\..*: there is no config file in .* or a folder above\. Write a config file, or pass the path of one$/
    ],
    [{}, "mine.json", /^mine\.json: there is no such file\. Check the path$/],
    [
      { "mine.json": "{" },
      "mine.json",
      /^mine\.json: the file is not valid JSON at line 1, column 2\. Fix the syntax there$/
    ],
    [
      { "mine.mjs": "export const a = 1" },
      "mine.mjs",
      /^mine\.mjs: the file has no default export; write export default/
    ]
  ])("%j read as %s is refused", async (files, file, message) => {
    const cwd = await folder(files)
    const error = await Effect.runPromise(Effect.flip(Configuration.load({ cwd, file, environment: {} })))
    assert.instanceOf(error, ConfigFileError)
    assert.match(error.message, message)
  })
})

describe("queuesOn", () => {
  const on = async (text: string) => {
    const { brokers, queuesOn } = await sound(text)
    return Object.fromEntries(
      [...brokers, "nobody"].map((name) => [name, queuesOn(name).map((each) => `${each.name} on ${each.broker}`)])
    )
  }

  it("gives a broker that no queue is on those that name none", async () => {
    const text = `
broker: local
brokers: { local: "memory:", staging: "memory:" }
queues:
  orders: {}
  mails: { name: outgoing-mails }
`
    assert.deepStrictEqual(await on(text), {
      local: ["orders on local", "outgoing-mails on local"],
      staging: ["orders on staging", "outgoing-mails on staging"],
      nobody: []
    })
  })

  it("gives a broker that a queue names no other, and no broker a queue that names another", async () => {
    const text = `
broker: local
brokers: { local: "memory:", reports: "memory:", staging: "memory:" }
queues:
  orders: { broker: local }
  sums: { broker: reports }
  mails: {}
`
    assert.deepStrictEqual(await on(text), {
      local: ["orders on local", "mails on local"],
      reports: ["sums on reports"],
      staging: ["mails on staging"],
      nobody: []
    })
  })
})

describe("a queue", () => {
  it("has all that its consumers need", async () => {
    const { queues } = await sound(`
brokers: { main: "memory:" }
policies:
  patient: { maxRetries: 8, backoff: { type: linear, step: 10 seconds } }
queues:
  orders:
    name: shop.orders
    codec: text
    delay: 1 second
    retry: patient
    batch: { maxBatchSize: 50 }
    consumerBackoff: true
    rateLimit: { max: 10, per: 1 second }
`)
    const { broker, codec, delay, name, options } = queues["orders"]!
    assert.deepStrictEqual(
      [broker, name, delay, codec.contentType],
      ["main", "shop.orders", 1000, "text/plain; charset=utf-8"]
    )
    assert.strictEqual(options.retry?.maxAttempts, 9)
    assert.strictEqual(options.batch?.maxBatchSize, 50)
    assert.strictEqual(options.consumerBackoff?.form, "consecutive")
    assert.strictEqual(options.consumerBackoff?.maxBackoffDuration, 120_000)
    assert.deepStrictEqual(options.rateLimit, { max: 10, per: 1000 })
  })

  it("that nobody knows is asked about", async () => {
    const cwd = await folder({ "requeue.config.json": json })
    const { queue } = await loadConfig({ cwd, environment: {} })
    expect(() => queue("ordres")).toThrow("queues: there is no queue named ordres. Did you mean orders?")
  })
})

describe("a program", () => {
  it("runs on the broker that the file names", async () => {
    const cwd = await folder({ "requeue.config.json": json })
    const { connect, queue } = await loadConfig({ cwd, environment: {} })
    const orders = queue<{ readonly id: number }>("orders")
    await using requeue = await connect()
    const handled = Promise.withResolvers<number>()
    await requeue.consume(orders, orders.options, ({ body }) => handled.resolve(body.id))
    await requeue.send(orders, { id: 7 })
    assert.strictEqual(await handled.promise, 7)
    assert.strictEqual(requeue.broker, "memory")
  })

  it("waits for its broker as long as the file says, or the call", async () => {
    const file = `export default {
      brokers: { main: { url: "memory:", waitForBroker: "1 minute" } }
    }`
    const cwd = await folder({ "requeue.config.mjs": file })
    const config = await Effect.runPromise(Configuration.load({ cwd, environment: {} }))
    assert.deepStrictEqual(
      [config.connectOptions().waitForBroker, config.connectOptions("none").waitForBroker],
      ["1 minute", undefined]
    )
    const { connect } = await loadConfig({ cwd, environment: {} })
    await (await connect()).close()
    await expect(connect("main", { waitForBroker: -1 })).rejects.toThrow("connect: waitForBroker must be a duration")
  })

  it.each(["5000", "5 seconds"])("waits for its broker as long as a variable says: %s", async (WAIT) => {
    const cwd = await folder({
      "requeue.config.yaml": "brokers: { main: { url: 'memory:', waitForBroker: '${WAIT}' } }"
    })
    const config = await Effect.runPromise(Configuration.load({ cwd, environment: { WAIT } }))
    assert.strictEqual(Delay.toMillis(config.connectOptions().waitForBroker!), 5000)
  })

  it("does not start with what its broker cannot do", async () => {
    const queues = { orders: { retry: { deadLetter: "orders" } } }
    const cwd = await folder({ "requeue.config.json": JSON.stringify({ brokers: { main: "memory:" }, queues }) })
    const { connect } = await loadConfig({ cwd, environment: {} })
    const error = await connect().then(
      () => assert.fail("it started"),
      (error: unknown) => error
    )
    assert.instanceOf(error, ConfigFileError)
    assert.match(error.message, /^requeue\.config\.json: queues\.orders\.retry\.deadLetter: /)
  })
})

it.each([5, { logLevel: "None" }])("a broker is named by text, not by %o", async (broker) => {
  const cwd = await folder({ "requeue.config.yaml": "brokers: { main: 'memory:' }" })
  const { connect } = await loadConfig({ cwd, environment: {} })
  const error = await connect(broker as never).then(
    () => assert.fail("it was accepted"),
    (refused: unknown) => refused
  )
  assert.match(String(error), /brokers: the name of a broker must be text, got .*\. Write connect\("NAME", options\)/)
})

describe("the options of a queue of the file", () => {
  const file = `
brokers: { main: "memory:" }
queues:
  w: { name: jobs, concurrency: 3, consumerBackoff: true, retry: { maxRetries: 0, deadLetter: jobs.dead } }
`

  /** Runs five messages, and returns how many were in progress at a time, and how many were dead-lettered. */
  const run = async (options: ConsumeOptions, isFailing = false) => {
    const { connect, queue } = await loadConfig({
      cwd: await folder({ "requeue.config.yaml": file }),
      environment: {}
    })
    await using requeue = await connect()
    await requeue.sendBatch(
      queue("w"),
      [1, 2, 3, 4, 5].map((body) => ({ body }))
    )
    let [running, most, done] = [0, 0, 0]
    const end = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    const wanted = options.concurrency ?? 3
    const worker = await requeue.consume(queue("w"), options, async () => {
      most = Math.max(most, ++running)
      if (running === wanted) started.resolve()
      await started.promise
      running--
      if (++done === 5) end.resolve()
      if (isFailing) throw new Error("failed")
    })
    await end.promise
    await worker.drain()
    return { most, dead: (await requeue.counts("jobs.dead")).ready }
  }

  it("apply to what the call leaves out, on the queue of that name", async () => {
    assert.deepStrictEqual(await run({}), { most: 3, dead: 0 })
    assert.deepStrictEqual(await run({}, true), { most: 3, dead: 5 })
  })

  it("are replaced one by one by the call's own", async () => {
    assert.deepStrictEqual(await run({ concurrency: 2, consumerBackoff: false }, true), { most: 2, dead: 5 })
  })

  it("apply to the queue's key too", async () => {
    const { connect } = await loadConfig({ cwd: await folder({ "requeue.config.yaml": file }), environment: {} })
    await using requeue = await connect()
    const handled = Promise.withResolvers<unknown>()
    await requeue.send("w", 1)
    assert.strictEqual((await requeue.counts("w")).ready, 1)
    const worker = await requeue.consume("w", {}, ({ body }) => {
      handled.resolve(body)
      throw new Error("failed")
    })
    assert.deepStrictEqual([await handled.promise, worker.queue], [1, "jobs"])
    await worker.drain()
    assert.strictEqual((await requeue.counts("jobs.dead")).ready, 1)
  })

  it("apply to a puller, as far as pullers have them", async () => {
    const { connect, queue } = await loadConfig({ cwd: await folder({ "requeue.config.yaml": file }), environment: {} })
    await using requeue = await connect()
    await requeue.send(queue("w"), 1)
    await using puller = await requeue.puller(queue("w"))
    const batch = await puller.pull()
    batch?.messages[0]?.fail(new Error("no"))
    batch?.settle()
    await puller.drain()
    assert.strictEqual((await requeue.counts("jobs.dead")).ready, 1)
  })
})

describe("a schema for a queue of the file", () => {
  const loaded = async (text: string) =>
    loadConfig({ cwd: await folder({ "requeue.config.yaml": text }), environment: {} })
  const schema: StandardSchemaV1<{ readonly id: string }, { readonly id: string }> = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) =>
        Object(value).id === undefined ? { issues: [{ message: "no id" }] } : { value: value as never }
    }
  }

  it("checks the bodies", async () => {
    const { connect, queue } = await loaded("brokers: { main: 'memory:' }\nqueues: { w: { concurrency: 2 } }")
    const orders = queue("w", { schema })
    assert.strictEqual(orders.options.concurrency, 2)
    await using requeue = await connect()
    await requeue.send(orders, { id: "a" })
    await expect(requeue.send(orders, {} as never)).rejects.toThrow("no id")
  })

  it.each<[string, any, string]>([
    ["json", { schema: 5 }, "queue (queue w): schema must be a Standard Schema"],
    ["json", { shema: schema }, "queue (queue w): unknown option shema. Did you mean schema?"],
    ["json", schema, "queue (queue w): unknown option ~standard. Allowed: schema"],
    [
      "text",
      { schema },
      "queue (queue w): a schema checks JSON, and the file gives another codec. Write codec: json in the file or leave schema out"
    ]
  ])("is refused where it cannot apply: codec %s, %o", async (codec, options, message) => {
    // Any, because a compiler would refuse them.
    const { queue } = await loaded(`brokers: { main: 'memory:' }\nqueues: { w: { codec: ${codec} } }`)
    expect(() => queue("w", options)).toThrow(message)
  })
})
