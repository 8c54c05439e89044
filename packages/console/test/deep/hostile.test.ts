/** Letters that want to harm whoever looks at them, in a browser: nothing of them runs, and pages stay quick. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { assert, it } from "@effect/vitest"
import { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { browser } from "../real/browser.ts"
import { faultsAtAll } from "./faults.ts"
import { consoleOf } from "../real/stage.ts"
import { visit } from "../real/visitors.ts"
import * as Waiting from "../waiting.ts"
import * as World from "../world.ts"

const script = `"></pre><script>window.canary=1</script><img src=x onerror="window.canary=2"><svg onload="window.canary=3">`

const bytes = (length: number) => Uint8Array.from({ length }, (_, index) => (index * 7 + 128) % 256)

/** Bodies by the id of their letter. */
const bodies: Readonly<Record<string, string | Uint8Array>> = {
  html: script,
  json: JSON.stringify({ note: script, [script]: 1 }),
  "five-megabytes": JSON.stringify({ text: "x".repeat(5 * 1024 * 1024) }),
  "one-line": "0123456789".repeat(100_000),
  "no-text": bytes(3000),
  controls: `\u0000\u0007\u001b[31m\u202eevil\u2066\u200b\ufeff${script}`,
  deep: `${"[".repeat(200_000)}${"]".repeat(200_000)}`
}

/** Milliseconds that a page has to answer a press of a key. */
const patience = 5000

it.live("a hostile letter runs nothing, and holds nothing up", () =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make()
    yield* World.queueOfLetters(broker)
    const letters = Object.entries(bodies).map(([id, body]) =>
      World.outgoing({ id, body, error: `HTTP 503 ${script}`, headers: { [`x-${id}`]: script } }, 0)
    )
    yield* broker.publish([...letters, World.outgoing({ id: script, error: "another" }, 0)])
    const source = { name: "memory", queues: World.queues, layer: Layer.succeed(Broker.Broker, broker), secrets: [] }
    const { url } = yield* consoleOf(source)
    const { click, page, strange } = yield* visit(yield* browser, url)
    yield* Effect.promise(async () => {
      const isWell = async (what: string) => {
        assert.isUndefined(await page.evaluate("window.canary"), what)
        assert.isFalse(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), `${what} is too wide`)
        await page.locator("nav a").first().focus({ timeout: patience })
        await page.keyboard.press("Tab")
      }
      await click("td[data-label='dead'] a")
      await page.locator("button:has-text('Browse again')").waitFor()
      await isWell("causes")
      await click("tbody a:has-text('HTTP 503')")
      const cause = page.url()
      await isWell("cause")
      for (const id of Object.keys(bodies)) {
        await page.goto(cause)
        await click(`tbody a:text-is('${id}')`)
        await isWell(`letter ${id}`)
        await click("button:text('Show the body')")
        await page.locator("pre").or(page.getByText("hidden")).first().waitFor()
        await isWell(`body ${id}`)
      }
    })
    assert.deepStrictEqual(strange, [])
  })
)

it.live("nor does it where it is looked for, edited, redriven, waits, or is told as an event", () =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make()
    yield* World.queueOfLetters(broker)
    const headers = { tenant: script, [`x-${script.replaceAll(/[^a-z]/g, "")}`]: script }
    const letter = World.outgoing({ id: script, body: JSON.stringify({ [script]: script }), error: script, headers }, 0)
    const later = Array.from({ length: 20 }, (_, n) =>
      Waiting.waiting(
        { id: `${n}${script}`, delay: 3_600_000 + n, error: `${script}${"x".repeat(n * 50)}`, headers },
        Date.now()
      )
    )
    yield* broker.publish([letter, ...later])
    const source = { name: "memory", queues: World.queues, layer: Layer.succeed(Broker.Broker, broker), secrets: [] }
    const { onEvent, url } = yield* consoleOf(source)
    const { click, page, strange } = yield* visit(yield* browser, url)
    yield* Effect.promise(async () => {
      page.setDefaultTimeout(patience)
      const isWell = async (what: string) => {
        assert.isUndefined(await page.evaluate("window.canary"), what)
        assert.deepStrictEqual(await faultsAtAll(page), [], what)
        await page.keyboard.press("Tab")
      }
      const fields = { broker: "memory", queue: "orders.dlq", header: `tenant=${script}`, id: script }
      await page.goto(`${url}dead-letters?${new URLSearchParams(fields).toString()}`)
      await page.getByText("1 letter found.").waitFor()
      await page.getByText("Browse again").waitFor()
      await click("summary:text('Filter…')")
      await isWell("filter")
      await click(".causes tbody a")
      const cause = page.url()
      await click(".letters tbody a")
      await click("button:text('Edit a copy…')")
      await page.locator("textarea[name=body]").fill(JSON.stringify({ [script]: [script, "changed"] }))
      await isWell("edit")
      await click("button:text('See the difference…')")
      await page.getByText("Redrive the copy to orders").waitFor()
      await isWell("difference")
      await page.goto(cause)
      await click("button.primary")
      await page.locator("fieldset").waitFor()
      await isWell("dry run")
      await page.goto(`${url}jobs`)
      await isWell("jobs")
      await page.goto(`${url}delayed?broker=memory&queue=orders`)
      await click("button:text('Browse')")
      await page.getByText("By last error").waitFor()
      for (const summary of await page.locator("tbody summary").all()) await summary.click()
      await isWell("delayed")
      const error = { name: script, message: script }
      onEvent("memory")({ _tag: "LeaseLost", queue: script, id: script, attempts: 1, error })
      await page.goto(`${url}events`)
      await page.getByText("lease lost").waitFor()
      await isWell("events")
      await page.goto(`${url}dead-letters?broker=memory&queue=orders.dlq`)
      await page.getByText("Browse again").waitFor()
      await click("summary:text('Purge…')")
      await page.locator("input[name=name]").fill("orders.dlq")
      await click("button:text('Purge all letters')")
      await page.getByText("What is left in").waitFor()
      await isWell("purge")
    })
    assert.deepStrictEqual(strange, [])
  })
)
