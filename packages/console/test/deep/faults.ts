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

/**
 * Texts that are cut or stand outside of their cell, numbers that do not end below their heading, and fields and buttons of one
 * line that do not end on one line. It runs in the page.
 */
export const crooked = `(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)].filter((each) => each.checkVisibility())
  const boxOf = (element) => element.getBoundingClientRect()
  const endOf = (cell) => {
    const range = document.createRange()
    const ends = all("*", cell).concat(cell).flatMap((element) => [...element.childNodes])
      .filter((node) => node.nodeType === 3 && node.data.trim() !== "" && node.parentNode.closest("svg") === null)
      .map((node) => (range.selectNodeContents(node), boxOf(range).right))
    return Math.max(...ends)
  }
  const name = (element) => element.outerHTML.slice(0, 120)
  const cut = all("th, td, dd, button, figcaption, .who").filter((each) => each.scrollWidth > each.clientWidth + 1)
  const clipped = all(".diagram text").filter((text) => boxOf(text).right > boxOf(text.closest("svg")).right + 1)
  const out = all("td time, dd time").filter((time) => boxOf(time).right > boxOf(time.parentElement).right + 1)
  const beside = all("table:has(thead th)").flatMap((table) => {
    const heads = all("thead th", table)
    return heads.length === 0 ? [] : all("tbody tr", table).flatMap((row) => [...row.children].filter(
      (cell, at) => cell.matches("td.n") && cell.textContent.trim() !== "" && Math.abs(endOf(cell) - endOf(heads[at])) > 1
    ))
  })
  const uneven = all("form").flatMap((form) => {
    const boxes = all("button, select, input:not([type=radio])", form)
    return boxes.filter((one) => boxes.some((other) => {
      const [a, b] = [boxOf(one), boxOf(other)]
      return a.top < b.bottom && b.top < a.bottom && Math.abs(a.bottom - b.bottom) > 1
    }))
  })
  return Object.entries({ cut, clipped, "outside of its cell": out, "not below its heading": beside, "not on one line": uneven })
    .flatMap(([fault, elements]) => elements.map((element) => fault + ": " + name(element)))
})()`

/** What axe finds wrong with a page, and what does not fit into its width. */
export const faults = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(axe)
  const violations: ReadonlyArray<Violation> = await page.evaluate("axe.run().then(({ violations }) => violations)")
  const isWide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
  const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
  const broken: ReadonlyArray<string> = await page.evaluate(narrow)
  const bent: ReadonlyArray<string> = await page.evaluate(crooked)
  const told = [...found, ...broken.map((name) => `too narrow: ${name.trim()}`), ...bent]
  return isWide === true ? [...told, "it is wider than the screen"] : told
}

/** The same at the widths of a telephone, a tablet and a large screen. */
export const faultsAtAll = async (page: Page): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  for (const width of [360, 768, 1600]) {
    await page.setViewportSize({ width, height: 800 })
    found.push(...(await faults(page)).map((fault) => `${width} px: ${fault}`))
  }
  return found
}
