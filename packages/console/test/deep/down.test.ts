/** A broker that goes down and comes back while operators look on: the page says so, hides nothing else, and recovers. */
import { assert, layer } from "@effect/vitest"
import { type BrokerName, proxy, type TcpProxy } from "@requeue/brokers"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Browser } from "playwright-core"
import { setTimeout as sleep } from "node:timers/promises"
import { browser } from "../real/browser.ts"
import { application, consoleOf, newQueue, serverOf, sourceFor, sourceOf } from "../real/stage.ts"
import { visit, type Visitor } from "../real/visitors.ts"

class Chromium extends Context.Service<Chromium, Browser>()("Chromium") {}

const count = 30

/** Milliseconds within which a look or a redrive is told what became of its connection. */
const patience = 60_000

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
    const lag = (millis: number) => ways.forEach((way) => way.delay(millis))
    const dead = `${queue}.dlq`
    const letters = `${console}dead-letters?broker=${name}&queue=${dead}`
    return { app, console, dead, down, lag, letters, other, queue, server, up }
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

/** NSQ has what a lost connection had when its lease ends: that takes a minute. */
const inTheMiddle = ["rabbitmq", "nsq"] as const

/** Opens the page of the letters, and looks, where that does not begin by itself. */
const look = async ({ click, page }: Visitor, url: string) => {
  await page.goto(url)
  const button = page.locator("button:text-is('Browse')")
  if (await button.isVisible()) await click("button:text-is('Browse')")
}

/** Redrives all that is there in this time; answers whether that came to its end. */
const redrive = async ({ click, page, text }: Visitor, url: string, rate = "") => {
  await page.goto(url)
  await click("button:text('Redrive all…')")
  await page.locator("fieldset").waitFor({ timeout: patience })
  await click("text=All at once")
  await page.locator("input[name=rate]").fill(rate)
  await click("button.primary")
  return {
    /** Waits until some are published, and others are not. */
    published: () =>
      page
        .locator("dt:text-is('published') + dd > span:text-matches('^([5-9]|1\\d|2[0-4])$')")
        .waitFor({ timeout: patience }),
    ended: async () => {
      await page.getByText("What is left in").waitFor({ timeout: 2 * patience })
      return text()
    }
  }
}

/** What a redrive says at its end: what it has published, or why it went no further. */
const goneOn = /done(, \d+ in both queues)? in .*published\s*\d+|The job failed\..*Call it again to go on/s

/** Waits until no reader holds letters. NSQ holds those of a lost connection until their leases end. */
const untilReady = async ({ counts }: Effect.Success<ReturnType<typeof application>>, dead: string) => {
  const ready = async () => (await Effect.runPromise(counts(dead))).ready
  for (const end = performance.now() + 2 * patience; (await ready()) !== count; await sleep(500))
    assert.isBelow(performance.now(), end, `${dead} should have ${count} ready letters again`)
}

/** Redrives what a redrive has left. SQS and NSQ have some of it back when the leases of those who have lost it end. */
const rest = async (
  visitor: Visitor,
  url: string,
  { counts, handled }: Effect.Success<ReturnType<typeof application>>,
  dead: string
) => {
  const end = performance.now() + 6 * patience
  while (new Set(handled).size < count && performance.now() < end) {
    const { ready = 0 } = await Effect.runPromise(counts(dead))
    if (ready > 0) await (await redrive(visitor, url)).ended()
    else await sleep(500)
  }
}

layer(Layer.effect(Chromium, browser), { excludeTestServices: true })("a broker that is down and comes back", (it) => {
  for (const name of ["rabbitmq", "nsq", "sqs"] as const) {
    it.effect(`is told, hides nothing else, and loses nothing: ${name}`, () =>
      Effect.gen(function* () {
        const { app, console, dead, down, letters, other, queue, up } = yield* world(name)
        yield* app.giveUp({ "HTTP 503 from the shop": count })
        const visitor = yield* visit(yield* Chromium, console)
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
          await (await redrive(visitor, letters)).ended()
        })
        yield* app.taken(count)
        assert.strictEqual((yield* app.counts(dead)).ready, 0)
      })
    )
  }

  for (const name of inTheMiddle) {
    it.effect(
      `is told in the middle of a look and of a redrive, and loses nothing: ${name}`,
      () =>
        Effect.gen(function* () {
          const { app, console, dead, down, lag, letters, up } = yield* world(name)
          yield* app.giveUp({ "HTTP 503 from the shop": count })
          app.mend()
          const visitor = yield* visit(yield* Chromium, console)
          yield* Effect.promise(async () => {
            await untilOverview(visitor, console, (shown) => shown.includes(String(count)))
            lag(300)
            await look(visitor, letters)
            await visitor.page.getByText(/Browsing: [1-9]/).waitFor({ timeout: patience })
            down()
            lag(0)
            await sleep(1000)
            up()
            await visitor.page
              .getByText("The browse failed.")
              .or(visitor.page.getByText("Browsed "))
              .first()
              .waitFor({ timeout: patience })
            assert.match(await visitor.text(), /The browse failed\.|Browsed (all|\d+ of) 30 letters/)

            await untilReady(app, dead)
            const { ended, published } = await redrive(visitor, letters, "5")
            await published()
            down()
            await sleep(2000)
            up()
            assert.match(await ended(), goneOn)
            await rest(visitor, letters, app, dead)
          })
          yield* app.taken(count)
          assert.strictEqual((yield* app.counts(dead)).ready, 0)
        }),
      600_000
    )
  }

  it.effect("is a server that is killed in the middle of a redrive, and starts again", () =>
    Effect.gen(function* () {
      const { app, console, dead, letters, server } = yield* world("rabbitmq")
      yield* app.giveUp({ "HTTP 503 from the shop": count })
      app.mend()
      const visitor = yield* visit(yield* Chromium, console)
      yield* Effect.promise(async () => {
        const { ended, published } = await redrive(visitor, letters, "5")
        await published()
        await server.kill()
        await untilOverview(visitor, console, (shown) => shown.includes("not answer"))
        await visitor.page.goBack()
        await server.start()
        assert.match(await ended(), goneOn)
        await rest(visitor, letters, app, dead)
      })
      yield* app.taken(count)
      assert.strictEqual((yield* app.counts(dead)).ready, 0)
    })
  )
})
