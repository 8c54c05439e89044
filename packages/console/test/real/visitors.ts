/** Operators at a browser: one Chromium for a file of tests, and a window for each of them. */
import * as Effect from "effect/Effect"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { operators } from "./stage.ts"

/** Somebody at the console. */
export interface Visitor {
  readonly page: Page
  /** What the browser complained of, and what it asked elsewhere. */
  readonly strange: ReadonlyArray<string>
  /** The text of the page. */
  readonly text: () => Promise<string>
  /** Clicks on the first of what a selector finds. */
  readonly click: (selector: string) => Promise<void>
  /** The clicks so far. */
  readonly clicks: () => number
}

/** Loads a page again until something is there: a page shows what its broker has told before, where that is slow now. */
export const untilVisible = async (page: Page, selector: string): Promise<void> => {
  for (const end = performance.now() + 120_000; performance.now() < end; await page.reload()) {
    if (await page.locator(selector).first().isVisible()) return
  }
  throw new Error(`${selector} did not come on ${page.url()}`)
}

/** A window of an operator, which shows the console at this URL. */
export const visit = (
  chromium: Browser,
  url: string,
  { operator = "ann", ...options }: BrowserContextOptions & { readonly operator?: keyof typeof operators } = {}
) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() =>
        chromium.newContext({ httpCredentials: { username: operator, password: operators[operator] }, ...options })
      ),
      (context) => Effect.promise(() => context.close())
    ).pipe(
      Effect.flatMap((context) =>
        Effect.promise(async () => {
          const strange: Array<string> = []
          // Enough for any machine.
          context.setDefaultTimeout(120_000)
          context.on("request", (request) => request.url().startsWith(url) || strange.push(request.url()))
          const page = await context.newPage()
          page.on("console", (message) => strange.push(message.text()))
          page.on("pageerror", (error) => strange.push(error.message))
          await page.goto(url)
          return { page, strange }
        })
      )
    ),
    ({ page, strange }): Visitor => {
      let clicks = 0
      return {
        page,
        strange,
        text: async () => (await page.textContent("main")) ?? "",
        clicks: () => clicks,
        click: async (selector) => {
          clicks++
          await page.locator(selector).first().click()
        }
      }
    }
  )
