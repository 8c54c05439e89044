/** A broker that goes down and comes back while operators look on: the page says so, hides nothing else, and recovers. */
import { assert, layer } from "@effect/vitest"
import { type BrokerName, proxy, type TcpProxy } from "@requeue/brokers"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Browser } from "playwright-core"
import { browser } from "./browser.ts"
import { application, consoleOf, newQueue, serverOf, sourceFor, sourceOf } from "./stage.ts"
import { visit, type Visitor } from "./visitors.ts"

class Chromium extends Context.Service<Chromium, Browser>()("Chromium") {}

const count = 30

const proxied = (port: number) =>
  Effect.acquireRelease(
    Effect.promise(() => proxy(port)),
    (between) => Effect.promise(() => between.close())
  )

/** The server of a broker, of which the console sees as much as a proxy lets pass, and a broker that is well beside it. */
const world = (name: BrokerName) =>
  Effect.gen(function* () {
    const server = yield* serverOf(name)
    const [queue, other] = [newQueue(), newQueue()]
    const app = yield* application(yield* sourceOf(name, server.url, queue), queue)
    const url = new URL(server.url)
    const ways: Array<TcpProxy> = [yield* proxied(Number(url.port))]
    const far = `127.0.0.1:${ways[0]!.port}`
    let address: string | object = server.url.replace(url.host, far)
    if (name === "nsq") {
      const http = yield* proxied(Number(url.port) + 1)
      ways.push(http)
      address = { url: address, nsqdHttp: [`127.0.0.1:${http.port}`] }
    }
    const source = yield* sourceOf(name, address, queue)
    const { url: console } = yield* consoleOf(source, yield* sourceFor("memory", other))
    const up = () => ways.forEach((way) => way.refuse(false))
    const down = () => {
      for (const way of ways) {
        way.refuse(true)
        way.cut()
      }
    }
    return { app, console, dead: `${queue}.dlq`, down, other, queue, up }
  })

/** Loads the overview again until it is so. */
const untilOverview = async ({ page, text }: Visitor, url: string, isSo: (text: string) => boolean) => {
  for (let loads = 0; loads < 100; loads++) {
    await page.goto(url)
    const shown = await text()
    if (isSo(shown)) return shown
  }
  throw new Error(`the overview did not come to that: ${await text()}`)
}

layer(Layer.effect(Chromium, browser), { excludeTestServices: true })("a broker that is down and comes back", (it) => {
  for (const name of ["rabbitmq", "nsq", "sqs"] as const) {
    it.effect(`is told, hides nothing else, and loses nothing: ${name}`, () =>
      Effect.gen(function* () {
        const { app, console, dead, down, other, queue, up } = yield* world(name)
        yield* app.giveUp({ "HTTP 503 from the shop": count })
        const visitor = yield* visit(yield* Chromium, console)
        const { click, page } = visitor
        yield* Effect.promise(async () => {
          await untilOverview(visitor, console, (shown) => shown.includes(String(count)))
          down()
          const shown = await untilOverview(visitor, console, (shown) => shown.includes("not answer"))
          assert.include(shown, queue)
          assert.include(shown, other)
          up()
          await untilOverview(visitor, console, (shown) => !shown.includes("not answer"))

          // What was there is redriven by the same console.
          app.mend()
          await page.goto(`${console}dead-letters?broker=${name}&queue=${dead}`)
          await click("button:text('Redrive all…')")
          await page.locator("fieldset").waitFor({ timeout: 90_000 })
          await click("text=All at once")
          await click(`button:text('Redrive ${count} letters')`)
          await page.getByText("What is left in").waitFor({ timeout: 90_000 })
        })
        yield* app.taken(count)
        assert.strictEqual((yield* app.counts(dead)).ready, 0)
      })
    )
  }
})
