/** The console in Chromium: the whole way of an operator, with script and without, for everybody, on large screens and small. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { browser, world } from "../real/browser.ts"
import { faults } from "./faults.ts"
import { screens, seen } from "./seeing.ts"

/** Opens a page; `strange` gets what it asks elsewhere, and what the browser complains of. */
const open = (options: Parameters<Effect.Success<typeof browser>["newContext"]>[0]) =>
  Effect.gen(function* () {
    const { heal, url } = yield* world
    const chromium = yield* browser
    const strange: Array<string> = []
    const page = yield* Effect.promise(async () => {
      const context = await chromium.newContext(options)
      context.on("request", (request) => request.url().startsWith(url) || strange.push(request.url()))
      const page = await context.newPage()
      page.on("console", (message) => strange.push(message.text()))
      page.on("pageerror", (error) => strange.push(error.message))
      await page.goto(url)
      return page
    })
    return { page, heal, strange }
  })

describe("in a browser", () => {
  it.live("what is wrong with a page is found", () =>
    Effect.gen(function* () {
      const { page } = yield* open({ viewport: { width: 360, height: 740 } })
      yield* Effect.promise(async () => {
        await page.setContent("<html><body><img src='/x' width='900'></body></html>")
        const found = await faults(page)
        assert.isTrue(found.some((line) => line.startsWith("image-alt: ")))
        assert.include(found, "it is wider than the screen")
        // Without the security headers of the console, which let no style stand in a page.
        await page.goto("about:blank")
        await page.setContent(
          `<html><body><table><thead><tr><th>queue</th><th>ready</th></tr></thead><tbody><tr><th>a</th>
            <td class="n" style="padding-right: 30px; text-align: right">1</td></tr></tbody></table>
          <form style="display: flex; align-items: start"><input style="height: 20px"><button style="height: 40px">Go</button></form>
          <dl><dd style="width: 20px; white-space: nowrap">3d 5h ago</dd></dl>
          <svg class="diagram" width="40"><text y="20">given up by the server</text></svg></body></html>`
        )
        const bent = (await faults(page)).join("\n")
        for (const fault of ["cut: ", "clipped: ", "not below its heading: ", "not on one line: "])
          assert.include(bent, fault)
      })
    })
  )

  for (const javaScriptEnabled of [true, false]) {
    it.live(`all is redriven in six clicks, ${javaScriptEnabled ? "with" : "without"} script`, () =>
      Effect.gen(function* () {
        const { heal, page, strange } = yield* open({ javaScriptEnabled })
        yield* heal
        yield* Effect.promise(async () => {
          let clicks = 0
          const click = async (selector: string) => {
            clicks++
            await page.locator(selector).first().click()
          }
          await click("td a:text('26')")
          await click("button:text('Redrive all…')")
          await click("button:text('Redrive 26 letters')")
          await page.getByText("What is left in orders.dlq").waitFor()
          assert.match((await page.textContent("main"))!, /succeeded\s*26/)
          await click("a:text('What is left')")
          await page.getByText("All is well").waitFor()
          assert.isAtMost(clicks, 6)
        })
        assert.deepStrictEqual(strange, [])
      })
    )
  }

  it.live("a job is stopped, and another operator sees it", () =>
    Effect.gen(function* () {
      const { page } = yield* open({})
      yield* Effect.promise(async () => {
        await page.locator("td a:text('26')").click()
        await page.getByText("Redrive all…").click()
        await page.getByText("Redrive 26 letters").click()
        await page.locator(".stages").waitFor()
        const other = await page.context().browser()!.newContext()
        const second = await other.newPage()
        await second.goto(page.url())
        // Nobody consumes: the first stage waits for its letter.
        await page.getByText("Stop", { exact: true }).click()
        await second.getByText("An operator stopped it.").waitFor()
        assert.match((await second.textContent("main"))!, /published\s*1\b/)
      })
    })
  )

  for (const { colorScheme, viewport } of screens) {
    it.live(`everybody can read it at ${viewport.width} pixels, ${colorScheme}`, () =>
      Effect.gen(function* () {
        const { page, strange } = yield* open({ colorScheme, viewport })
        yield* Effect.promise(async () => {
          const see = seen(page, { viewport, colorScheme })
          await see("overview")
          await page.locator("td a:text('26')").click()
          await page.getByText("Browse again").waitFor()
          await see("causes")
          await page.locator("tbody a").first().click()
          await see("cause")
          await page.locator("tbody a").first().click()
          await page.getByText("Show the body").click()
          await page.getByRole("region", { name: "Body" }).waitFor()
          await see("letter")
          await page.getByRole("link", { name: "Error", exact: true }).click()
          await page.locator("button.primary").click()
          await page.locator("fieldset").waitFor()
          await see("dry-run")
          await page.locator("button.primary").click()
          await page.locator(".stages").waitFor()
          await see("redrive")
          await page.locator("nav a:text('Jobs')").click()
          await see("jobs")
          await page.goto(`${new URL(page.url()).origin}/nothing`)
          await see("refused")
        })
        assert.deepStrictEqual(
          strange.filter((line) => !line.includes("404 (Not Found)")),
          []
        )
      })
    )
  }
})
