/** The pages of queues in Chromium: for everybody, on large screens and small, with every form of policy. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { NodeServer } from "../../src/index.ts"
import { browser } from "../real/browser.ts"
import { crooked } from "./faults.ts"
import { forms, hostile, make, pathOf, planners } from "../queueWorld.ts"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
const pictures = fileURLToPath(new URL("../../../../docs/console/", import.meta.url))
const isRecording = process.env["REQUEUE_RECORD"] !== undefined

const screens = [
  { width: 1600, height: 900 },
  { width: 360, height: 740 }
].flatMap((viewport) => (["light", "dark"] as const).map((colorScheme) => ({ viewport, colorScheme })))

interface Violation {
  readonly id: string
  readonly nodes: ReadonlyArray<{ readonly html: string }>
}

/** Pages that are looked at, and the name of the picture of some. */
const pages = [
  [pathOf("memory", "growing", { outage: "20" }), "queue"],
  [pathOf("rabbitmq", "ladder"), "queue-plan"],
  ...Object.keys(forms).map((name) => [pathOf("memory", name, { outage: "15" }), undefined] as const),
  ...planners.map(([name]) => [pathOf(name, hostile), undefined] as const)
] as const

describe("the page of a queue", () => {
  for (const { colorScheme, viewport } of screens) {
    it.live(`can be read by everybody at ${viewport.width} pixels, ${colorScheme}`, () =>
      Effect.gen(function* () {
        const { console } = yield* make({ timeout: 500 })
        const { href } = yield* NodeServer.serve(console, { port: 0 })
        const chromium = yield* browser
        yield* Effect.promise(async () => {
          const strange: Array<string> = []
          const page = await (await chromium.newContext({ colorScheme, viewport })).newPage()
          page.on("console", (message) => strange.push(message.text()))
          page.on("pageerror", (error) => strange.push(error.message))
          // Half of the screens have both widths and both colours: enough for those without a picture.
          const isAll = (viewport.width === 360) === (colorScheme === "dark")
          for (const [path, picture] of pages) {
            if (picture === undefined && !isAll) continue
            await page.goto(`${href.slice(0, -1)}${path}`)
            await page.evaluate(axe)
            const found: ReadonlyArray<Violation> = await page.evaluate(
              "axe.run().then(({ violations }) => violations)"
            )
            const faults = found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
            assert.deepStrictEqual(faults, [], path)
            if (picture !== undefined) assert.deepStrictEqual(await page.evaluate(crooked), [], path)
            assert.isFalse(await page.evaluate("document.documentElement.scrollWidth > innerWidth"), `${path} is wide`)
            if (isRecording && picture !== undefined) {
              const name = `${picture}-${viewport.width}-${colorScheme}.png`
              const part = await page.$("section:has(.diagram)")
              await (picture === "queue-plan" ? part! : page).screenshot({ path: `${pictures}${name}` })
              if (picture !== "queue") continue
              await (await page.$("#outage"))!.screenshot({ path: `${pictures}queue-outage${name.slice(5)}` })
            }
          }
          assert.deepStrictEqual(strange, [])
        })
      })
    )
  }
})
