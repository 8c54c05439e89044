/** Numbers and ages as people read them, and as the script of the page keeps them. */
import { assert, it } from "vitest"
import { readFileSync } from "node:fs"
import { runInNewContext } from "node:vm"
import * as Format from "../src/internal/format.ts"
import { html } from "../src/internal/html.ts"

it("shares are rounded, and none is all or nothing that is not", () => {
  const shares = ([part, whole]: readonly [number, number]) => Format.share(part, whole)
  assert.deepStrictEqual(
    (
      [
        [20, 26],
        [5, 26],
        [1, 26],
        [1, 1000],
        [999, 1000],
        [3, 3],
        [0, 3],
        [0, 0]
      ] as const
    ).map(shares),
    ["77 %", "19 %", "4 %", "< 1 %", "> 99 %", "100 %", "0 %", "0 %"]
  )
})

it("ages grow while a page stays, by the clock of its server", () => {
  const [begun, late] = [1_800_000_000_000, 7_200_000]
  let tick = () => {}
  let browser = begun + late
  const time = { dateTime: new Date(begun).toISOString(), textContent: "", ariaLive: "" }
  runInNewContext(readFileSync(new URL("../assets/console.js", import.meta.url), "utf8"), {
    // The browser's clock is two hours ahead.
    Date: { now: () => browser, parse: Date.parse },
    addEventListener: () => {},
    document: {
      documentElement: { dataset: { now: String(begun) } },
      querySelectorAll: (selector: string) => (selector === "time.ago" ? [time] : [])
    },
    setInterval: (run: () => void) => (tick = run)
  })
  for (const age of [
    0, 999, 1000, 54_321, 60_000, 61_000, 3_599_000, 3_600_000, 90_000_000, 86_400_000, 9e9, 31_536_000_000
  ]) {
    browser = begun + late + age
    tick()
    const shown = html`${Format.ago(begun, begun + age)}`.text
    assert.include(shown, `>${time.textContent}</time>`)
    // Nobody has each second read to them.
    assert.strictEqual(time.ariaLive, "off")
  }
})
