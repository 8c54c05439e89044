/** The way of an operator from the overview to all redriven. */
import { assert } from "vitest"
import { untilVisible, type Visitor } from "./visitors.ts"

/** The letters of each cause. */
export const causes = { "HTTP 503 from the shop": 12, "the card was declined": 3 }

/** Goes from the overview to all redriven, and sees each page on the way. */
export const wholeWay = async (
  { click, page, text }: Visitor,
  { isStaged, isUntold }: { readonly isStaged: boolean; readonly isUntold: boolean },
  see: (name: string) => Promise<void> = async () => {}
) => {
  await untilVisible(page, "td a:text('15')")
  await see("overview")
  await click("td a:text('15')")
  await page.getByText("Redrive all…").waitFor()
  // Where a look costs something, it is asked for.
  if ((await text()).includes("No browse yet")) await click("button:text-is('Browse')")
  await page.getByText("Browsed all 15 letters").waitFor()
  await see("causes")
  await click("a:text('the card was declined')")
  assert.match(await text(), /All 3 letters/)
  await see("cause")
  await click("tbody a")
  await see("letter")
  await click("button:text('Show the body')")
  const body = page.getByRole("region", { name: "Body" })
  await body.waitFor()
  assert.match((await body.textContent())!, /"cause": "the card was declined"/)
  await see("body")
  await click("nav a:text('Queues')")
  await page.locator("h1:text-is('Queues')").waitFor({ state: "attached" })
  await untilVisible(page, "td a:text('15')")
  await click("td a:text('15')")
  await click("button:text('Redrive all…')")
  await page.locator("fieldset").waitFor()
  if (isUntold)
    assert.match(await text(), /waits 1m, or until all its letters have come back: .* Give the option management/)
  else assert.match(await text(), /until the outcome of its letters is known, 1m at most/)
  await see("dry-run")
  if (!isStaged) await click("text=All at once")
  await click("button:text('Redrive 15 letters')")
  await page.getByText("What is left in").waitFor({ timeout: 300_000 })
  assert.match(await text(), /published\s*15/)
  await see("redriven")
  await click("a:text('What is left')")
  await page.locator("h1:has-text('0 letters')").waitFor()
  // A look that begins by itself has ended when there is something to do again.
  await page.locator("button:has-text('Browse')").waitFor()
  await see("nothing left")
}
