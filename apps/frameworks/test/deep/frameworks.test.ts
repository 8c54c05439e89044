/**
 * Each program of docs/frameworks.md from its start to its end: fed over HTTP, stopped by SIGTERM while handlers run. What
 * was accepted is handled, once. What is handled beside it are orders whose customer got no answer.
 */
import { type RabbitMqBroker, start as startBroker } from "@requeue/brokers"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { ofHooks, prepare, type Prepared, recipes } from "./programs.ts"
import { type Order, type Service, shipping, start, until } from "./service.ts"

/** The consumers' own, in the page. */
const concurrency = 5

const inOrder = (ids: Iterable<string>) => [...ids].toSorted()
const idsOf = (orders: ReadonlyArray<Order>) => orders.map(({ id }) => id)

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
    const shipped = Promise.withResolvers<void>()
    const shop = await shipping(() => shipped.promise)
    const service = await serve(name, "memory:", shop.url)
    await service.ready()
    assert.strictEqual(await service.status("/livez"), 200)
    assert.strictEqual(await service.empty(), 400)
    const accepted = await Promise.all(Array.from({ length: concurrency }, (_, total) => service.order(total)))
    await until("all handlers run", () => shop.begun.length === concurrency)
    const end = service.end("SIGTERM")
    await service.portClosed()
    shipped.resolve()
    assert.deepStrictEqual(await end, { code: 0, signal: null }, service.said())
    assert.deepStrictEqual(inOrder(idsOf(shop.shipped)), inOrder(accepted.map(String)))
    shop.close()
  })

  it("on RabbitMQ: orders come while it is stopped, and the next process handles the rest", async () => {
    const shop = await shipping()
    const accepted: Array<string> = []
    const first = await serve(name, rabbit.url, shop.url)
    await first.ready()
    /** Orders until the program takes none. */
    const customer = async (from: number) => {
      for (let total = from; total < from + 10_000; total++) {
        const id = await first.order(total)
        if (id === undefined) return
        accepted.push(id)
      }
    }
    const customers = Promise.all([customer(0), customer(10_000), customer(20_000), customer(30_000)])
    await until(
      "the handlers are far behind",
      () => shop.shipped.length > 0 && accepted.length > shop.begun.length + 100
    )
    // It never sends the rest.
    await first.begin(40_000)
    const late = await first.begin(50_000)
    const signalled = performance.now()
    const end = first.end("SIGTERM")
    await first.portClosed()
    // A request that it has is answered; the next one on the connection is the last.
    const answers = await late.finish()
    if (answers.length === 2) {
      assert.match(answers[0]!, /^HTTP\/1.1 202 /)
      assert.match(answers[1]!, name === "Fastify" ? /^HTTP\/1.1 503 / : /^HTTP\/1.1 202 /)
      assert.match(answers[1]!, /^connection: close\r$/im)
    } else assert.isAtLeast(performance.now() - signalled, 5000, `cut before the page's deadline: ${answers.join("")}`)
    accepted.push(...answers.flatMap((answer) => /(?<="id":")[^"]+/.exec(answer) ?? []))
    assert.deepStrictEqual(await end, { code: 0, signal: null }, first.said())
    await customers
    assert.deepStrictEqual(first.failed(), [], "requests that were taken and not carried out")
    assert.isAbove(accepted.length, shop.shipped.length, "accepted, against those handled by the first process")
    assert.lengthOf(shop.shipped, shop.begun.length, "handlers that were let finish")

    shop.pace.wait = async () => {}
    const second = await serve(name, rabbit.url, shop.url)
    const isShipped = (id: string) => shop.shipped.some((order) => order.id === id)
    await until("all that were accepted are handled", () => accepted.every(isShipped))
    assert.deepStrictEqual(await second.end("SIGTERM"), { code: 0, signal: null }, second.said())
    const handled = idsOf(shop.shipped)
    assert.deepStrictEqual(inOrder(handled), inOrder(new Set(handled)), "handled once")
    // An order is sent before it is answered: what cuts the connection in between lets it be handled, and not be accepted.
    const others = shop.shipped.filter(({ id, total }) => !accepted.includes(id) && !first.unanswered.has(total))
    assert.deepStrictEqual(others, [], "handled, though their customers were told that they were not accepted")
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
    const shop = await shipping()
    const service = await serve(name, "memory:", shop.url)
    await service.ready()
    const accepted = await service.order(1)
    await until("its handler runs", () => shop.begun.length === 1)
    assert.deepStrictEqual(await service.end("SIGTERM"), end, service.said())
    assert.deepStrictEqual(idsOf(shop.shipped), [accepted])
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
