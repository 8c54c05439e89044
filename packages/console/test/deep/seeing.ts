/** Pages as people see them: their pictures. */
import { assert } from "@effect/vitest"
import { mkdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Page } from "playwright-core"
import { faults } from "./faults.ts"

/** Pictures for people: they are made anew with `REQUEUE_RECORD=1`, and judged by eye. */
const pictures = fileURLToPath(new URL("../../../../docs/console/", import.meta.url))
const isRecording = process.env["REQUEUE_RECORD"] !== undefined
if (isRecording) mkdirSync(pictures, { recursive: true })

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
    // What fits on a large screen may not on a tablet.
    if (viewport.width === 1600) {
      await page.setViewportSize({ ...viewport, width: 768 })
      assert.deepStrictEqual(await faults(page), [], `${name} at 768 pixels`)
      await page.setViewportSize(viewport)
    }
    const path = `${pictures}${name}-${viewport.width}-${colorScheme}.png`
    if (isRecording) await page.screenshot({ path })
  }
