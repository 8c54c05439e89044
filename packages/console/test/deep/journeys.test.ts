/** The whole way of an operator in stages on every server: from the overview to all redriven, with books that balance. */
import { assert, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Browser, Page } from "playwright-core"
import { browser } from "../real/browser.ts"
import { faultsAtAll } from "./faults.ts"
import { servers, stage } from "../real/stage.ts"
import { visit } from "../real/visitors.ts"
import { causes, wholeWay } from "../real/wholeWay.ts"

class Chromium extends Context.Service<Chromium, Browser>()("Chromium") {}

/** Milliseconds of a whole way: where the broker does not count all, a minute behind each of three stages is part of it. */
const timeout = 420_000

/** Presses Tab until what has the focus has this text, then Enter. */
const press = async (page: Page, name: string) => {
  const focused = `(document.activeElement?.textContent ?? "").trim()`
  for (let tabs = 0; tabs < 60; tabs++) {
    await page.keyboard.press("Tab")
    if (String(await page.evaluate(focused)) === name) return page.keyboard.press("Enter")
  }
  throw new Error(`no way by Tab to ${name} on ${page.url()}`)
}

layer(Layer.effect(Chromium, browser), { excludeTestServices: true })("a whole way", (it) => {
  for (const name of servers) {
    const way = () =>
      Effect.gen(function* () {
        const { app, audit, dead, queue, url } = yield* stage(name)
        const how = {
          isStaged: true,
          // Its configuration is without the management interface.
          isUntold: name === "rabbitmq"
        }
        yield* app.giveUp(causes)
        app.mend()
        const visitor = yield* visit(yield* Chromium, url)
        const see = async (page: string) => assert.deepStrictEqual(await faultsAtAll(visitor.page), [], page)
        // One broker whose looks cost something, which the pages say: those of the others are judged in browser.test.ts.
        yield* Effect.promise(() => wholeWay(visitor, how, name === "sqs" ? see : undefined))
        yield* app.taken(15)
        assert.deepStrictEqual(visitor.strange, [])
        assert.strictEqual(app.handled.length, 15, "one was handled twice")
        assert.strictEqual((yield* app.counts(dead)).ready, 0)
        assert.strictEqual((yield* app.counts(queue)).ready, 0)
        const told = audit.map((line) => (JSON.parse(line) as { readonly command: string }).command)
        assert.includeMembers(told, ["console body", "console plan", "console redrive"])
      })
    it.effect(`on ${name}`, way, { timeout })
  }

  it.effect("by keyboard alone", () =>
    Effect.gen(function* () {
      const { app, url } = yield* stage("memory")
      yield* app.giveUp(causes)
      app.mend()
      const { page, text } = yield* visit(yield* Chromium, url)
      yield* Effect.promise(async () => {
        await press(page, "15")
        await page.getByText("Redrive all…").waitFor()
        await press(page, "Redrive all…")
        await page.locator("fieldset").waitFor()
        await press(page, "Redrive 15 letters")
        await page.getByText("What is left in").waitFor()
        assert.match(await text(), /succeeded\s*15/)
      })
      yield* app.taken(15)
      assert.strictEqual(app.handled.length, 15)
    })
  )
})
