/** What is wrong with a page: for those who cannot see it well, and on small screens. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

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

/** The same at the widths of a telephone and of a large screen. */
export const faultsAtAll = async (page: Page): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  for (const width of [360, 1600]) {
    await page.setViewportSize({ width, height: 800 })
    found.push(...(await faults(page)).map((fault) => `${width} px: ${fault}`))
  }
  return found
}
