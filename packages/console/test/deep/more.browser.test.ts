/** What waits, what is exported, and what happens, in Chromium, on large screens and small. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, type Event } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { readFileSync } from "node:fs"
import { Authorization, Console, NodeServer } from "../../src/index.ts"
import { browser } from "../real/browser.ts"
import { screens, seen } from "./seeing.ts"
import * as Waiting from "../waiting.ts"
import * as World from "../world.ts"

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

const refused = { name: "Error", message: "connect ECONNREFUSED 10.0.4.7:8443" }

/** Events of a night. */
const night: ReadonlyArray<Event.Event> = [
  ...[1, 2, 3].flatMap((attempts): ReadonlyArray<Event.Event> => {
    const subject = { queue: "orders", id: "order-88213", attempts }
    return [
      { ...subject, _tag: "AttemptFailed", error: refused, willRerun: false },
      { ...subject, _tag: "RetryScheduled", delay: 5000 * attempts, error: refused }
    ]
  }),
  { _tag: "BackoffEntered", queue: "orders", because: "handler", level: 2, wait: 30_000 },
  {
    _tag: "DeadLettered",
    queue: "orders",
    id: "order-88213",
    attempts: 4,
    reason: "retries-exhausted",
    target: "orders.dlq",
    error: refused
  },
  { _tag: "LeaseLost", queue: "mails", id: "mail-1", attempts: 1, error: new Error("the lease has ended") },
  { _tag: "BackoffLeft", queue: "orders", because: "handler" }
]

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
          await page.locator("button:text('Browse')").click()
          await page.locator("summary:text('Purge…')").click()
          await page.locator("select[name=cause]").selectOption({ index: 2 })
          await page.locator("input[name=name]").fill("orders")
          await page.locator("button:text('Purge')").click()
          await page.getByText("What is left in orders").waitFor()
        })
        assert.strictEqual((yield* broker.admin.counts("orders")).delayed, 5)
        assert.deepStrictEqual(strange, [])
      })
    )
  }

  for (const javaScriptEnabled of [true, false]) {
    it.live(`letters are downloaded, ${javaScriptEnabled ? "with" : "without"} script`, () =>
      Effect.gen(function* () {
        const { broker, page, strange } = yield* open({ javaScriptEnabled })
        yield* Effect.promise(async () => {
          await page.locator("td[data-label='dead'] a").first().click()
          await page.getByText("Browsed all 3 letters").waitFor()
          await page.locator("summary:text('Export…')").click()
          for (const name of ["first", "again"]) {
            const [file] = await Promise.all([
              page.waitForEvent("download"),
              page.locator("button:text('Export all letters')").click()
            ])
            assert.match(file.suggestedFilename(), /^orders\.dlq-[\dT-]+\.jsonl$/, name)
            const lines = readFileSync(await file.path(), "utf8")
              .trimEnd()
              .split("\n")
            assert.lengthOf(lines, 3)
            assert.notInclude(lines.join(""), "4242")
          }
        })
        assert.strictEqual((yield* broker.admin.counts("orders.dlq")).ready, 3)
        assert.deepStrictEqual(strange, [])
      })
    )
  }

  it.live("events come by themselves, the newest first", () =>
    Effect.gen(function* () {
      const { page, requeue, strange } = yield* open({})
      yield* Effect.promise(async () => {
        await page.locator("nav a:text('Events')").click()
        await page.getByText("No events yet").waitFor()
        const hook = requeue.onEvent("rabbit")
        hook({ _tag: "BackoffLeft", queue: "orders", because: "handler" })
        await page.getByText("resumes").waitFor()
        hook({ _tag: "BackoffLeft", queue: "mails", because: "broker" })
        await page.getByText("the broker works").waitFor()
        assert.match((await page.locator("tbody tr").first().textContent())!, /mails/)
        await page.locator("a:text('Pause')").click()
        await page.getByText("paused").waitFor()
        await page.locator("select[name=kind]").selectOption("bad")
        await page.locator("button:text('Show')").click()
        await page.getByText("No events yet").waitFor()
      })
      assert.deepStrictEqual(strange, [])
    })
  )

  for (const screen of screens) {
    it.live(`everybody can read what waits at ${screen.viewport.width} pixels, ${screen.colorScheme}`, () =>
      Effect.gen(function* () {
        const { page, requeue, strange, url } = yield* open(screen)
        yield* Effect.promise(async () => {
          const see = seen(page, screen)
          await page.locator("td[data-label='in backoff'] a").first().click()
          await page.locator("button:text('Browse')").click()
          await page.getByText("By last error").waitFor()
          await page.locator("tbody summary").first().click()
          await page.mouse.move(0, 0)
          await see("delayed")
          await page.goto(url)
          await page.locator("td[data-label='dead'] a").first().click()
          await page.getByText("Browsed all 3 letters").waitFor()
          await page.locator("summary:text('Export…')").click()
          await see("export")
          const hook = requeue.onEvent("rabbit")
          for (const event of night) hook(event)
          await page.locator("nav a:text('Events')").click()
          await page.getByText("lease lost").waitFor()
          await see("events")
        })
        assert.deepStrictEqual(strange, [])
      })
    )
  }
})
