/** Many letters in a browser: the first causes are there soon after the look has begun. */
import { assert, layer } from "@effect/vitest"
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Browser } from "playwright-core"
import { browser } from "../real/browser.ts"
import { commandOf, newQueue, serverOf, sourceOf } from "../real/stage.ts"
import { visit } from "../real/visitors.ts"
import * as World from "../world.ts"

class Chromium extends Context.Service<Chromium, Browser>()("Chromium") {}

/** Letters; a server for tests that speaks SQS's protocol takes minutes for 100,000. */
const counts = { rabbitmq: 100_000, nsq: 100_000, sqs: 20_000 }

/** Milliseconds from the beginning of the look to the first cause; where others of these tests have the processors, it takes longer. */
const soon = 3000

/** The most bytes of memory that the console may have had. */
const room = 200 * 1024 * 1024

layer(Layer.effect(Chromium, browser), { excludeTestServices: true })("many letters", (it) => {
  for (const name of ["rabbitmq", "nsq", "sqs"] as const) {
    it.effect(
      `of ${name} are shown by cause while the look goes on, and take little memory`,
      () =>
        Effect.gen(function* () {
          const [queue, count] = [newQueue(), counts[name]]
          const server = yield* serverOf(name)
          const { layer } = yield* sourceOf(name, server.url, queue)
          const broker = Context.get(yield* Layer.build(layer), Broker.Broker)
          const now = Date.now()
          for (let done = 0; done < count; done += 1000) {
            const letters = Array.from({ length: Math.min(1000, count - done) }, (_, n) => ({
              ...World.outgoing({ id: `order-${done + n}`, error: `HTTP 503 from shop ${n % 5}` }, now),
              queue: `${queue}.dlq`
            }))
            yield* broker.publish(letters)
          }
          const { peak, url } = yield* commandOf(name, server.url, queue)
          const { page } = yield* visit(yield* Chromium, url)
          yield* Effect.promise(async () => {
            const before = peak()
            await page.goto(`${url}dead-letters?broker=${name}&queue=${queue}.dlq`)
            const button = page.locator("button:text-is('Browse')")
            if (await button.isVisible()) {
              await page.locator("select[name=limit]").selectOption("100000")
              await button.click()
            }
            const begun = performance.now()
            await page.locator("table.causes").waitFor({ timeout: 60_000 })
            const first = performance.now() - begun
            await page.getByText(`Browsed all ${count.toLocaleString("en-US")} letters`).waitFor({ timeout: 600_000 })
            const all = performance.now() - begun
            const mebibytes = [before, peak()].map((bytes) => Math.round(bytes / 2 ** 20)).join(" to ")
            console.log(
              `${name}: ${count} letters, first causes in ${Math.round(first)} ms, all in ${Math.round(all)} ms, ${mebibytes} MiB`
            )
            assert.isAtMost(first, soon)
            assert.isBelow(peak(), room)
          })
        }),
      900_000
    )
  }
})
