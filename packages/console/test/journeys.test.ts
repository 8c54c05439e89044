/** The whole way of an operator on every broker: from the overview to all redriven, with books that balance. */
import { assert, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Browser, Page } from "playwright-core"
import { browser } from "./browser.ts"
import { faultsAtAll } from "./faults.ts"
import { names, stage } from "./stage.ts"
import { untilVisible, visit, type Visitor } from "./visitors.ts"

class Chromium extends Context.Service<Chromium, Browser>()("Chromium") {}

/** The letters of each cause. */
const causes = { "HTTP 503 from the shop": 12, "the card was declined": 3 }

/** Stages wait until it is known what became of letters: seconds on NSQ and SQS, and up to a minute on RabbitMQ. */
const isSlow = process.env["REQUEUE_SLOW_TESTS"] === "1"

/** Goes from the overview to all redriven, and sees each page on the way. */
const wholeWay = async (
  { click, page, text }: Visitor,
  { isStaged, isUntold }: { readonly isStaged: boolean; readonly isUntold: boolean },
  see: (name: string) => Promise<void> = async () => {}
) => {
  await untilVisible(page, "td a:text('15')")
  await see("overview")
  await click("td a:text('15')")
  await page.getByText("Redrive all…").waitFor()
  // Where a look costs something, it is asked for.
  if ((await text()).includes("Nobody has looked yet")) await click("button:text-is('Look')")
  await page.getByText("Looked at all 15 letters").waitFor()
  await see("causes")
  await click("a:text('the card was declined')")
  assert.match(await text(), /All 3 letters/)
  await see("cause")
  await click("tbody a")
  await see("letter")
  await click("button:text('Show the body')")
  await page.locator("pre").waitFor()
  assert.match((await page.textContent("pre"))!, /"cause": "the card was declined"/)
  await see("body")
  await click("nav a:text('Queues')")
  await page.locator("h1:text-is('Queues')").waitFor({ state: "attached" })
  await untilVisible(page, "td a:text('15')")
  await click("td a:text('15')")
  await click("button:text('Redrive all…')")
  await page.locator("fieldset").waitFor()
  if (isUntold) assert.match(await text(), /waits 1m, or until all have come back: .* Give the option management/)
  else assert.match(await text(), /until it is known what became of the letters, 1m at most/)
  await see("dry-run")
  if (!isStaged) await click("text=All at once")
  await click("button:text('Redrive 15 letters')")
  await page.getByText("What is left in").waitFor({ timeout: 300_000 })
  assert.match(await text(), /published\s*15/)
  await see("redriven")
  await click("a:text('What is left')")
  await page.locator("h1:has-text('0 letters')").waitFor()
  // A look that begins by itself has ended when there is something to do again.
  await page.locator("button:has-text('Look')").waitFor()
  await see("nothing left")
}

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
  for (const name of names) {
    // Without a script, the console is the same for each broker.
    const ways = isSlow || name === "memory" ? [true, false] : [true]
    it.effect(`on ${name}, with script${ways.length > 1 ? " and without" : ""}`, () =>
      Effect.gen(function* () {
        const { app, audit, dead, queue, url } = yield* stage(name)
        const how = {
          isStaged: isSlow || name === "memory",
          // Its configuration is without the management interface.
          isUntold: name === "rabbitmq"
        }
        // One broker whose looks cost nothing, and one that says so first.
        const isJudged = name === "memory" || name === "sqs"
        for (const javaScriptEnabled of ways) {
          yield* app.giveUp(causes)
          app.mend()
          const visitor = yield* visit(yield* Chromium, url, { javaScriptEnabled })
          const see = async (page: string) => assert.deepStrictEqual(await faultsAtAll(visitor.page), [], page)
          yield* Effect.promise(() => wholeWay(visitor, how, isJudged && javaScriptEnabled ? see : undefined))
          yield* app.taken(javaScriptEnabled ? 15 : 30)
          assert.deepStrictEqual(visitor.strange, [])
        }
        assert.strictEqual(app.handled.length, 15 * ways.length, "one was handled twice")
        assert.strictEqual((yield* app.counts(dead)).ready, 0)
        assert.strictEqual((yield* app.counts(queue)).ready, 0)
        const told = audit.map((line) => (JSON.parse(line) as { readonly command: string }).command)
        assert.includeMembers(told, ["console body", "console plan", "console redrive"])
      })
    )
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
