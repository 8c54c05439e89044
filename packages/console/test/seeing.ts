/** Pages as people see them: what is wrong with one, and its picture. */
import { assert } from "@effect/vitest"
import { mkdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import type { Page } from "playwright-core"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** Pictures for people: they are made anew with `REQUEUE_RECORD=1`, and judged by eye. */
const pictures = fileURLToPath(new URL("../../../docs/console/", import.meta.url))
const isRecording = process.env["REQUEUE_RECORD"] !== undefined
if (isRecording) mkdirSync(pictures, { recursive: true })

interface Violation {
  readonly id: string
  readonly nodes: ReadonlyArray<{ readonly html: string }>
}

/** Names of rows that stand letter below letter. */
const narrow = `[...document.querySelectorAll("tbody th")].filter((cell) => cell.clientWidth < 30).map((cell) => cell.textContent)`

/** What axe finds wrong with a page, and what does not fit into its width. */
export const faults = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(axe)
  const violations: ReadonlyArray<Violation> = await page.evaluate("axe.run().then(({ violations }) => violations)")
  const isWide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
  const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
  const broken: ReadonlyArray<string> = await page.evaluate(narrow)
  const told = [...found, ...broken.map((name) => `too narrow: ${name.trim()}`)]
  return isWide === true ? [...told, "it is wider than the screen"] : told
}

/** The screens on which pages are seen. */
export const screens = [
  { width: 1600, height: 900 },
  { width: 360, height: 740 }
].flatMap((viewport) => (["light", "dark"] as const).map((colorScheme) => ({ viewport, colorScheme })))

/** Finds nothing wrong with a page, and makes its picture where these are recorded. */
export const seen =
  (page: Page, { colorScheme, viewport }: (typeof screens)[number]) =>
  async (name: string): Promise<void> => {
    assert.deepStrictEqual(await faults(page), [], name)
    const path = `${pictures}${name}-${viewport.width}-${colorScheme}.png`
    if (isRecording) await page.screenshot({ path })
  }
