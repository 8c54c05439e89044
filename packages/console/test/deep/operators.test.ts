/** Two operators at one queue, at the same time: what they are told, and that nothing is lost or doubled. */
import { assert, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Browser } from "playwright-core"
import { browser } from "../real/browser.ts"
import { stage } from "../real/stage.ts"
import { visit, type Visitor } from "../real/visitors.ts"

class Chromium extends Context.Service<Chromium, Browser>()("Chromium") {}

const count = 8

/** Goes to the queue, and counts what a redrive of all would do. */
const planned = async ({ click, page }: Visitor) => {
  await click("nav a:text('Queues')")
  await click("td[data-label='dead'] a")
  await click("button:text('Redrive all…')")
  await page.locator("fieldset").waitFor()
}

/** Types the queue's name, and purges it. */
const purge = async ({ click, page }: Visitor, dead: string) => {
  await click("summary:text('Purge…')")
  await page.locator("input[name=name]").fill(dead)
  await click("button:text('Purge all letters')")
}

layer(Layer.effect(Chromium, browser), { excludeTestServices: true })("two operators", (it) => {
  it.effect("work on the same queue", () =>
    Effect.gen(function* () {
      const { app, audit, dead, url } = yield* stage("memory")
      yield* app.giveUp({ "HTTP 503 from the shop": count })
      // Nobody consumes: what is redriven waits.
      yield* app.close
      const [ann, bob] = [yield* visit(yield* Chromium, url), yield* visit(yield* Chromium, url, { operator: "bob" })]
      yield* Effect.promise(async () => {
        await planned(ann)
        await planned(bob)
        const counted = bob.page.url()
        await ann.click(`button:text('Redrive ${count} letters')`)
        await ann.page.getByText("Stop", { exact: true }).waitFor()
        assert.include(await ann.text(), "until the outcome of its letters is known")
        const running = new URL(ann.page.url()).searchParams.get("id")!

        // Bob, whose count is older, is told who works there.
        await bob.click(`button:text('Redrive ${count} letters')`)
        assert.include(await bob.text(), `job ${running} of ann works on ${dead}`)
        await bob.click("nav a:text('Queues')")
        await bob.click("td[data-label='dead'] a")
        await bob.page.locator("button:has-text('Browse')").waitFor()
        await purge(bob, dead)
        assert.include(await bob.text(), `job ${running} of ann works on ${dead}`)

        // He sees her job, and stops it; she is told.
        await bob.click("nav a:text('Jobs')")
        await bob.click("a:text('Redrive')")
        await bob.click("button:text('Stop')")
        await ann.page.getByText("An operator stopped it.").waitFor()
        assert.match(await ann.text(), /published\s*1\b/)

        // His count of before takes no more than is left.
        await bob.page.goto(counted)
        await bob.click("text=All at once")
        await bob.click(`button:text('Redrive ${count} letters')`)
        await bob.page.getByText("What is left in").waitFor({ timeout: 60_000 })
        assert.match(await bob.text(), new RegExp(`published\\s*${count - 1}\\b`))
      })
      app.mend()
      yield* app.reopen
      yield* app.taken(count)
      assert.strictEqual(app.handled.length, count, "one was handled twice")
      assert.strictEqual((yield* app.counts(dead)).ready, 0)
      const acts = audit.map((line) => JSON.parse(line) as { readonly command: string; readonly operator: string })
      assert.isTrue(acts.some(({ command, operator }) => command === "console stop" && operator === "bob"))
    })
  )

  it.effect("purge and redrive: one of them does it, and the other is told", () =>
    Effect.gen(function* () {
      const { app, dead, url } = yield* stage("memory")
      yield* app.giveUp({ "HTTP 503 from the shop": count })
      const [ann, bob] = [yield* visit(yield* Chromium, url), yield* visit(yield* Chromium, url, { operator: "bob" })]
      yield* Effect.promise(async () => {
        await planned(ann)
        await bob.click("td[data-label='dead'] a")
        await bob.page.locator("button:has-text('Browse')").waitFor()
        await purge(bob, `${dead}-not`)
        assert.include(await bob.text(), "Nothing was removed")
        await bob.page.goBack()
        await purge(bob, dead)
        await bob.page.getByText("What is left in").waitFor()
        assert.match(await bob.text(), new RegExp(`removed\\s*${count}\\b`))
        await ann.click(`button:text('Redrive ${count} letters')`)
        await ann.page.getByText("What is left in").waitFor()
        assert.match(await ann.text(), /published\s*0\b/)
      })
      assert.deepStrictEqual(app.handled, [])
    })
  )
})
