/** Many letters in a browser: the first causes are there soon after the look has begun. */
import { assert, layer } from "@effect/vitest"
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Browser } from "playwright-core"
import { browser } from "./browser.ts"
import { consoleOf, newQueue, sourceFor } from "./stage.ts"
import { visit } from "./visitors.ts"
import * as World from "./world.ts"

class Chromium extends Context.Service<Chromium, Browser>()("Chromium") {}

const isSlow = process.env["REQUEUE_SLOW_TESTS"] === "1"

/** Letters; a server for tests that speaks SQS's protocol takes minutes for 100,000. */
const counts = { rabbitmq: isSlow ? 100_000 : 3000, nsq: isSlow ? 100_000 : 3000, sqs: isSlow ? 20_000 : 1000 }

/** Milliseconds from the beginning of the stream to the first cause. */
const soon = 3000

layer(Layer.effect(Chromium, browser), { excludeTestServices: true })("many letters", (it) => {
  for (const name of ["rabbitmq", "nsq", "sqs"] as const) {
    it.effect(
      `of ${name} are shown by cause while the look goes on`,
      () =>
        Effect.gen(function* () {
          const [queue, count] = [newQueue(), counts[name]]
          const source = yield* sourceFor(name, queue)
          const broker = Context.get(yield* Layer.build(source.layer), Broker.Broker)
          const now = Date.now()
          for (let done = 0; done < count; done += 1000) {
            const letters = Array.from({ length: Math.min(1000, count - done) }, (_, n) => ({
              ...World.outgoing({ id: `order-${done + n}`, error: `HTTP 503 from shop ${n % 5}` }, now),
              queue: `${queue}.dlq`
            }))
            yield* broker.publish(letters)
          }
          const { url } = yield* consoleOf(source)
          const { page } = yield* visit(yield* Chromium, url)
          yield* Effect.promise(async () => {
            await page.goto(`${url}dead-letters?broker=${name}&queue=${queue}.dlq`)
            const button = page.locator("button:text-is('Look')")
            if (await button.isVisible()) {
              await page.locator("select").selectOption("100000")
              await button.click()
            }
            const begun = performance.now()
            await page.locator("table.causes").waitFor({ timeout: 60_000 })
            const first = performance.now() - begun
            await page.getByText(`Looked at all ${count.toLocaleString("en-US")} letters`).waitFor({ timeout: 600_000 })
            const all = performance.now() - begun
            console.log(
              `${name}: ${count} letters, first causes in ${Math.round(first)} ms, all in ${Math.round(all)} ms`
            )
            // On a machine of its own: others of its tests may have the processors.
            if (isSlow) assert.isAtMost(first, soon)
          })
        }),
      900_000
    )
  }
})
