/** What waits, what is exported, and what happens, in Chromium, on large screens and small. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Authorization, Console, NodeServer } from "../src/index.ts"
import { browser } from "./browser.ts"
import { screens, seen } from "./seeing.ts"
import * as Waiting from "./waiting.ts"
import * as World from "./world.ts"

/** A console with letters, and with messages in backoff. */
const world = Effect.gen(function* () {
  const broker = yield* MemoryBroker.make()
  const now = yield* Clock.currentTimeMillis
  const failed = Array.from({ length: 14 }, (_, n) => ({
    id: `order-${88_213 + n}`,
    delay: 4000 + 13_700 * n * n,
    error: n % 3 === 2 ? "Error: HTTP 503 from shop.example" : `Error: connect ECONNREFUSED 10.0.4.${n}:8443`,
    headers: { "content-type": "application/json", tenant: "acme" }
  }))
  const later = { id: "reminder-1", delay: 20 * 3_600_000 }
  yield* broker.publish([...failed, later].map((each) => Waiting.waiting(each, now - 61_000)))
  const letters = ["order-1", "order-2", "order-3"].map((id) =>
    World.outgoing({ id, body: JSON.stringify({ order: id, card: { number: "4242" } }) }, now - 60_000)
  )
  yield* broker.publish(letters)
  const layer = Layer.succeed(Broker.Broker, broker)
  const brokers = [{ name: "rabbit", queues: World.queues, layer, secrets: [] }]
  const authorize = Authorization.everybody("oncall", "purge")
  const requeue = yield* Console.make({ brokers, audit: () => {}, authorize })
  return { broker, requeue, url: (yield* NodeServer.serve(requeue, { port: 0 })).href }
})

/** Opens the overview; `strange` gets what the browser complains of. */
const open = (options: Parameters<Effect.Success<typeof browser>["newContext"]>[0]) =>
  Effect.gen(function* () {
    const opened = yield* world
    const chromium = yield* browser
    const strange: Array<string> = []
    const page = yield* Effect.promise(async () => {
      const context = await chromium.newContext(options)
      const page = await context.newPage()
      page.on("console", (message) => strange.push(message.text()))
      page.on("pageerror", (error) => strange.push(error.message))
      await page.goto(opened.url)
      return page
    })
    return { ...opened, page, strange }
  })

describe("in a browser", () => {
  for (const javaScriptEnabled of [true, false]) {
    it.live(`messages in backoff are removed by their error, ${javaScriptEnabled ? "with" : "without"} script`, () =>
      Effect.gen(function* () {
        const { broker, page, strange } = yield* open({ javaScriptEnabled })
        yield* Effect.promise(async () => {
          await page.locator("td[data-label='in backoff'] a").first().click()
          await page.locator("button:text('Look')").click()
          await page.locator("summary:text('Purge…')").click()
          await page.locator("select[name=cause]").selectOption({ index: 1 })
          await page.locator("input[name=name]").fill("orders")
          await page.locator("button:text('Purge')").click()
          await page.getByText("What is left in orders").waitFor()
        })
        assert.strictEqual((yield* broker.admin.counts("orders")).delayed, 5)
        assert.deepStrictEqual(strange, [])
      })
    )
  }

  for (const screen of screens) {
    it.live(`everybody can read what waits at ${screen.viewport.width} pixels, ${screen.colorScheme}`, () =>
      Effect.gen(function* () {
        const { page, strange } = yield* open(screen)
        yield* Effect.promise(async () => {
          const see = seen(page, screen)
          await page.locator("td[data-label='in backoff'] a").first().click()
          await page.locator("button:text('Look')").click()
          await page.getByText("By last error").waitFor()
          await page.locator("tbody summary").first().click()
          await page.mouse.move(0, 0)
          await see("delayed")
        })
        assert.deepStrictEqual(strange, [])
      })
    )
  }
})
