/** Messages that wait for a retry or a delivery for later: what is shown of them, and what is removed. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Authorization, Console } from "../src/index.ts"
import * as Waiting from "./waiting.ts"
import * as World from "./world.ts"

const authorize = Authorization.everybody("root", "purge")

/** Three messages that failed, of two errors, and one that was sent for later. */
const some = [
  { id: "order-1", delay: 60_000, error: "Error: 503 from shop 17", headers: { tenant: "acme" } },
  { id: "order-2", delay: 5000, error: "Error: 503 from shop 18" },
  { id: "order-3", delay: 3_600_000, error: "Error: no sku" },
  { id: "order-4", delay: 7_200_000 }
]

const made = (memory?: Parameters<typeof MemoryBroker.make>[0]) =>
  Effect.gen(function* () {
    const world = yield* World.make({ authorize }, memory)
    yield* world.broker.publish(some.map((each) => Waiting.waiting(each, 0)))
    return { ...world, left: Effect.map(world.broker.admin.counts("orders"), ({ delayed }) => delayed) }
  })

/** The texts in the first cells of rows. */
const rows = ({ text }: World.Arrived) =>
  [...text.matchAll(/<th scope="row"[^>]*>(.*?)<\/th>/gs)].map(([, all]) => all!)

describe("messages in backoff", () => {
  it.effect("are counted without a look, which begins when somebody asks for it", () =>
    Effect.gen(function* () {
      const { get, submit } = yield* made()
      const overview = yield* get("/")
      assert.strictEqual(World.linkTo(overview, "/delayed"), Waiting.page)
      const before = yield* get(Waiting.page)
      assert.match(before.text, /waiting<\/dt><dd>4</)
      assert.match(before.text, /due within 10s<\/dt><dd>1</)
      assert.include(before.text, "A message that becomes due meanwhile is late until the browse ends")
      assert.deepStrictEqual(rows(before), [])
      const browsed = yield* submit(before, "/delayed")
      assert.strictEqual(browsed.status, 200)
      const shown = rows(browsed).map((each) => World.decoded(each.replaceAll(/<details.*<\/details>|<[^>]+>/gs, "")))
      const errors = ["Error: 503 from shop <num>", "Error: no sku", "no failed attempt yet"]
      assert.deepStrictEqual(shown, [...errors, "order-2", "order-1", "order-3", "order-4"])
      assert.match(browsed.text, /1 header<.*tenant:<\/span>\s*acme/s)
      assert.match(browsed.text, /data-label="due"><time[^>]*>in 5s</)
      assert.notInclude(browsed.text, "the-body")
    })
  )

  it.effect("come at their time, whoever has looked", () =>
    Effect.gen(function* () {
      const { broker, get, submit } = yield* made()
      yield* submit(yield* get(Waiting.page), "/delayed")
      yield* TestClock.adjust("5 seconds")
      const { delayed, ready } = yield* broker.admin.counts("orders")
      assert.deepStrictEqual([ready, delayed], [1, 3])
    })
  )

  it.effect("are removed by their error, or all, as a job with its lines in the audit", () =>
    Effect.gen(function* () {
      const { audit, get, left, settled, submit } = yield* made()
      const browsed = yield* submit(yield* get(Waiting.page), "/delayed")
      const [, cause] = /<option value="([\da-f]{16})">\s*2:/.exec(browsed.text)!
      const begun = yield* submit(browsed, "/purge-delayed", { name: "orders", cause: cause! })
      const job = yield* settled(begun.headers.get("location")!)
      assert.match(job.text, /removed<\/dt><dd><span class="strong">2<.*left here<\/dt><dd><span class="strong">2</s)
      assert.strictEqual(World.linkTo(job, "/delayed"), Waiting.page)
      assert.strictEqual(yield* left, 2)
      const all = yield* submit(yield* get(Waiting.page), "/purge-delayed", { name: "orders" })
      yield* settled(all.headers.get("location")!)
      assert.strictEqual(yield* left, 0)
      const titles = ["Error: 503 from shop <num>", "all delayed messages"]
      assert.deepStrictEqual(
        audit.map(({ command, event, options }) => [command, event, options]),
        titles.flatMap((title) =>
          ["begin", "end"].map((event) => ["console purge-delayed", event, { messages: title }])
        )
      )
      assert.deepInclude(audit[1], { outcome: "done", queues: [{ queue: "orders", removed: 2, left: 2, held: 0 }] })
    })
  )

  it.effect("of an error that no look has found are not removed", () =>
    Effect.gen(function* () {
      const { get, left, submit } = yield* made()
      const before = yield* get(Waiting.page)
      const { status } = yield* submit(before, "/purge-delayed", { name: "orders", cause: "0123456789abcdef" })
      assert.strictEqual(status, 409)
      assert.strictEqual(yield* left, 4)
    })
  )

  it.effect("are told in words where the broker cannot show them", () =>
    Effect.gen(function* () {
      const { get, left, post } = yield* made({ faults: { capabilities: { delayedMessages: false } } })
      const page = yield* get(Waiting.page)
      assert.include(page.text, "shows no message before it is due")
      assert.match(page.text, /waiting<\/dt><dd>4</)
      assert.notInclude(page.text, `action="/delayed"`)
      const token = /name="token" value="([^"]+)"/.exec((yield* get(World.deadLetters)).text)![1]!
      const fields = { broker: "local", queue: "orders", token }
      const browsed = yield* post("/delayed", fields)
      assert.strictEqual(browsed.status, 502)
      assert.include(browsed.text, "the broker cannot show messages that wait for their delay")
      assert.strictEqual(yield* left, 4)
    })
  )

  it.effect("whose removal was lost on its way are told as in doubt", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      const lost = new BrokerError.BrokerError({
        broker: "memory",
        operation: "delayed",
        reason: "ConnectionFailed",
        detail: "it is away"
      })
      const browse: Broker.Admin["browse"] = (options) =>
        Effect.map(own.admin.browse(options), (browser) => ({
          ...browser,
          remove: (deliveries) =>
            Effect.succeed(deliveries.map((delivery) => ({ delivery, error: lost, fate: "transient" as const })))
        }))
      const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, browse } })
      const brokers = [{ name: "local", queues: World.queues, layer, secrets: [] }]
      yield* own.publish(some.map((each) => Waiting.waiting(each, 0)))
      const { get, settled, submit } = World.browser(yield* Console.make({ brokers, audit: () => {}, authorize }))
      const begun = yield* submit(yield* get(Waiting.page), "/purge-delayed", { name: "orders" })
      const { text } = yield* settled(begun.headers.get("location")!)
      assert.include(text, "it is away; 4 delayed messages had been selected by then, and may be gone")
    })
  )
})
