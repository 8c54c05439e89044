/** The demo's broken run, mended in the console: from its overview to all redriven. */
import { chromium as chromiumOf } from "@requeue/brokers"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { chromium, type Page } from "playwright-core"
import { afterAll, beforeAll, expect, test } from "vitest"
import { start } from "../real/program.ts"

const cli = fileURLToPath(new URL("../../../../packages/cli/src/main.ts", import.meta.url))

/** Pictures of the way, made anew with `REQUEUE_RECORD=1`. */
const pictures = fileURLToPath(new URL("../../../../docs/console/", import.meta.url))
const isRecorded = process.env["REQUEUE_RECORD"] !== undefined

const open = async () =>
  chromium.launch({
    executablePath: await chromiumOf(),
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
  })
let browser: Awaited<ReturnType<typeof open>>
beforeAll(async () => {
  browser = await open()
})
afterAll(() => browser.close())

/** Only ends what hangs, on a machine that is slow and busy. */
const patience = 120_000

/** Asks again until it is so. */
const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
  for (const end = performance.now() + patience; performance.now() < end; ) if (await isSo()) return
  throw new Error(`waited for ${patience / 1000} s: ${what}`)
}

/** Runs `requeue console` with a config file, and answers where it is. */
const serve = async (config: string) => {
  const child = spawn(process.execPath, [cli, "console", "--config", config, "--port", "0", "--json"], {
    stdio: ["ignore", "pipe", "ignore"]
  })
  const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string]
  const { url } = JSON.parse(line) as { readonly url: string }
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, "exit")
      child.kill("SIGINT")
      await ended
    }
  }
}

/** Goes from the overview to all redriven, and answers by how many clicks. */
const redrive = async (page: Page, see: (name: string) => Promise<unknown>): Promise<number> => {
  let clicks = 0
  const click = async (selector: string) => {
    clicks++
    await page.locator(selector).first().click()
  }
  await see("overview")
  await click("td[data-label='dead'] a")
  const redriveAll = page.getByText("Redrive all…")
  await redriveAll.waitFor()
  await see("causes")
  await click("button:text('Redrive all…')")
  await page.locator("fieldset").waitFor()
  await see("dry-run")
  await click("text=All at once")
  await click("button.primary")
  await page.getByText("What is left in").waitFor()
  await see("redriven")
  await click("a:text('What is left')")
  await page.locator("h1:has-text('0 letters')").waitFor()
  await redriveAll.waitFor()
  await see("left")
  return clicks
}

test("the demo's dead letters are redriven in the console by at most 6 clicks", async () => {
  const count = isRecorded ? "1000" : "60"
  const demo = start("--broker", "rabbitmq", "--count", count, "--wait", "--json")
  await demo.says(/requeue -- console --config \S+\n/)
  const [, config] = /console --config (\S+)\n/.exec(demo.output.stderr)!
  await using console = await serve(config!)
  const page = await browser.newPage({ viewport: { width: 1000, height: 560 } })
  page.setDefaultTimeout(patience)
  // A broker that is slow may answer only when its page is loaded again.
  await until("the overview counts dead letters", async () => {
    await page.goto(console.url)
    return page.locator("td[data-label='dead'] a").isVisible()
  })
  let number = 0
  const see = async (name: string) => {
    number++
    if (isRecorded) await page.screenshot({ path: `${pictures}way-${number}-${name}.png` })
  }
  expect(await redrive(page, see)).toBeLessThanOrEqual(6)
  // The redrive puts all of them into the queue at once. The demo reports when its consumer has handled all.
  await demo.says(/console --config [^]* 100 %/)
  demo.child.kill("SIGINT")
  expect(await demo.ended()).toEqual({ code: 0, signal: null })
  const { deadLettered, redrive: after } = demo.report()
  expect(deadLettered).toBeGreaterThan(0)
  expect(after).toMatchObject({ redriven: deadLettered, deadLettered: 0, queued: 0, balanced: true })
}, 300_000)
