/**
 * Each program of docs/frameworks.md from its start to its end: fed over HTTP, stopped by SIGTERM while handlers run. What
 * was accepted is what was handled.
 */
import { type RabbitMqBroker, start as startBroker } from "@requeue/brokers"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { ofHooks, prepare, type Prepared, recipes } from "./programs.ts"
import { type Service, shipping, start, until } from "./service.ts"

/** The consumers' own, in the page. */
const concurrency = 5

const inOrder = (ids: Iterable<string>) => [...ids].toSorted()

let rabbit: RabbitMqBroker
const programs = new Map<string, Prepared>()
const running: Array<Service> = []

beforeAll(async () => {
  rabbit = await startBroker("rabbitmq")
  for (const [name, recipe] of Object.entries({ ...recipes, ...ofHooks })) programs.set(name, await prepare(recipe))
})
afterAll(async () => {
  for (const service of running) service.kill()
  for (const program of programs.values()) program.dispose()
  await rabbit.dispose()
})

const serve = async (name: string, broker: string, orders: string) => {
  const service = await start(programs.get(name)!, broker, orders)
  running.push(service)
  return service
}

describe.each(Object.keys(recipes))("%s", (name) => {
  it("on memory: what its handlers had at SIGTERM is handled", async () => {
    const shop = await shipping(500)
    const service = await serve(name, "memory:", shop.url)
    await service.ready()
    assert.strictEqual(await service.status("/livez"), 200)
    assert.strictEqual(await service.empty(), 400)
    const accepted = await Promise.all(Array.from({ length: concurrency }, (_, total) => service.order(total)))
    await until("all handlers run", () => shop.begun.length === concurrency)
    assert.lengthOf(shop.shipped, 0, "orders that were shipped before the signal")
    assert.deepStrictEqual(await service.end("SIGTERM"), { code: 0, signal: null }, service.said())
    assert.deepStrictEqual(inOrder(shop.shipped), inOrder(accepted.map(String)))
    shop.close()
  })

  it("on RabbitMQ: orders come while it is stopped, and the next process handles the rest", async () => {
    const shop = await shipping(500)
    const accepted: Array<string> = []
    const first = await serve(name, rabbit.url, shop.url)
    await first.ready()
    /** Orders until nobody answers. */
    const customer = async () => {
      for (let total = 0; total < 1000; total++) {
        const id = await first.order(total)
        if (id === undefined) return
        accepted.push(id)
      }
    }
    const customers = Promise.all([customer(), customer(), customer(), customer()])
    await until(
      "the handlers are far behind",
      () => shop.shipped.length > 0 && accepted.length > shop.begun.length + 100
    )
    await first.hang()
    assert.deepStrictEqual(await first.end("SIGTERM"), { code: 0, signal: null }, first.said())
    await customers
    assert.deepStrictEqual(first.failed(), [], "requests that were taken and not carried out")
    assert.isAbove(accepted.length, shop.shipped.length, "accepted, against those handled by the first process")
    assert.lengthOf(shop.shipped, shop.begun.length, "handlers that were let finish")

    shop.pace.millis = 0
    const second = await serve(name, rabbit.url, shop.url)
    await until("all are handled", () => shop.shipped.length >= accepted.length)
    assert.deepStrictEqual(await second.end("SIGTERM"), { code: 0, signal: null }, second.said())
    assert.deepStrictEqual(inOrder(shop.shipped), inOrder(accepted))
    shop.close()
  })

  it("without its broker it ends with exit code 1, and never opens its port", async () => {
    const service = await serve(name, "amqp://127.0.0.1:1/", "http://127.0.0.1:1/")
    const { code } = await service.end()
    assert.strictEqual(code, 1, service.said())
    assert.include(service.said(), "ConnectionFailed")
    assert.isUndefined(await service.status("/livez"))
  })
})

describe("the page's other claims", () => {
  it.each([
    ["enableShutdownHooks()", { code: null, signal: "SIGTERM" }],
    ["with useProcessExit", { code: 0, signal: null }]
  ] as const)("Nest: %s", async (name, end) => {
    const shop = await shipping(500)
    const service = await serve(name, "memory:", shop.url)
    await service.ready()
    const accepted = await service.order(1)
    await until("its handler runs", () => shop.begun.length === 1)
    assert.deepStrictEqual(await service.end("SIGTERM"), end, service.said())
    assert.deepStrictEqual(shop.shipped, [accepted])
    shop.close()
  })

  it("while the broker is away it is live and not ready, and ready again by itself", async ({ skip }) => {
    if (rabbit.nodes.length === 0) skip("the broker is not ours to stop")
    const service = await serve("Fastify", rabbit.url, "http://127.0.0.1:1/")
    await service.ready()
    await rabbit.stop()
    await until("not ready", async () => (await service.status("/readyz")) === 503)
    assert.strictEqual(await service.status("/livez"), 200)
    await rabbit.start()
    await service.ready()
    assert.deepStrictEqual(await service.end("SIGTERM"), { code: 0, signal: null }, service.said())
  })
})
