/** Filters, edits, other queues and parked letters, in Chromium, on large screens and small. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { browser, world } from "../real/browser.ts"
import { screens, seen } from "./seeing.ts"
import * as World from "../world.ts"

/** A letter that can be edited, whose life is known. */
const mendable = Effect.map(Clock.currentTimeMillis, (now) => {
  const headers = {
    "content-type": "application/json",
    tenant: "acme",
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
  }
  const body = JSON.stringify({ order: 88_240, lines: [{ sku: "tea", pieces: "two" }], note: "<b>fragile</b>" })
  const letter = World.outgoing({ id: "order-88240", error: "pieces must be a number", headers, body }, now - 60_000)
  const { metadata } = letter
  const failed = (attempt: number, at: number, delay: number) => ({
    attempt,
    at: now - at,
    error: "Error: pieces must be a number",
    delay
  })
  const history = [failed(1, 700_000, 30_000), failed(2, 669_000, 120_000), failed(3, 548_500, 480_000)]
  return { ...letter, metadata: { ...metadata, firstPublished: now - 700_400, history } }
})

describe("in a browser", () => {
  for (const screen of screens) {
    it.live(`letters are found, edited and parked at ${screen.viewport.width} pixels, ${screen.colorScheme}`, () =>
      Effect.gen(function* () {
        const { broker, url } = yield* world
        yield* broker.publish([yield* mendable])
        yield* World.queueOfLetters(broker, "mails")
        const chromium = yield* browser
        const strange: Array<string> = []
        yield* Effect.promise(async () => {
          const context = await chromium.newContext(screen)
          const page = await context.newPage()
          page.on("console", (message) => strange.push(message.text()))
          page.on("pageerror", (error) => strange.push(error.message))
          const see = seen(page, screen)
          await page.goto(`${url}dead-letters?broker=rabbit&queue=orders.dlq`)
          await page.getByText("Browse again").waitFor()
          await page.locator("summary:text('Filter…')").click()
          await page.locator("input[name=error]").fill("shop")
          await page.locator("input[name=header]").fill("tenant=acme")
          await page.locator("button:text('Filter')").click()
          await page.getByText("5 letters found.").waitFor()
          // The look is over, and its page loads no more.
          await page.getByText("Browse again").waitFor()
          await page.locator("summary:text('Filter…')").click()
          await page.mouse.move(0, 0)
          await see("filter")
          await page.locator(".causes tbody a").first().click()
          await page.locator(".letters tbody a").first().click()
          await page.locator("summary:text('Park…')").click()
          await page.getByRole("button", { name: "Park this letter" }).waitFor()
          await page.goto(`${url}dead-letters?broker=rabbit&queue=orders.dlq&id=order-88240`)
          await page.locator(".causes tbody a").first().click()
          await page.locator(".letters tbody a").first().click()
          await see("life")
          await page.locator("button:text('Edit a copy…')").click()
          const shown = await page.locator("textarea[name=body]").inputValue()
          assert.include(shown, `"pieces": "two"`)
          await see("edit")
          await page.locator("textarea[name=body]").fill(shown.replace('"two"', "2"))
          await page.locator("button:text('See the difference…')").click()
          await page.getByText("Redrive the copy to orders").waitFor()
          await see("difference")
          await page.goto(`${url}dead-letters?broker=rabbit&queue=orders.dlq&id=order-20`)
          await page.locator(".causes tbody a").first().click()
          await page.locator(".letters tbody a").first().click()
          await page.locator("button:text('Edit a copy…')").click()
          await page.getByText("the console cannot edit this letter: a part of its body is hidden").waitFor()
          await page.goBack()
          await page.locator("summary:text('Park…')").click()
          await page.locator("button:text('Park this letter')").click()
          await page.getByText("What is left in").waitFor()
          await see("park")
          await page.locator("a:text('What is left')").click()
          await page.getByText("1 letter parked").click()
          await page.getByText("These letters are parked.").waitFor()
          await page.locator("button:text('Redrive all…')").click()
          await page.locator("summary:text('To another queue…')").click()
          await page.locator("select[name=to]").selectOption("mails")
          await page.locator("button:text('Count for this queue')").click()
          await page.getByText("Redrive 1 letter to mails").waitFor()
          await see("elsewhere")
        })
        assert.deepStrictEqual(
          strange.filter((line) => !line.includes("409 (Conflict)")),
          []
        )
      })
    )
  }
})
