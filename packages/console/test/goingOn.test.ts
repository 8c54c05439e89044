/** Jobs that stopped, and how an operator goes on. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Authorization, Console } from "../src/index.ts"
import * as World from "./world.ts"

/** A console with letters of two causes. `wait` lets each browse take an hour from now on. */
const made = Effect.gen(function* () {
  const own = yield* MemoryBroker.make()
  yield* World.queueOfLetters(own)
  const letters = ["order-1", "order-2", "order-3", "order-4"].map((id, index) =>
    World.outgoing({ id, ...(index === 2 ? {} : { error: "no sku" }) }, 0)
  )
  yield* own.publish(letters)
  let isWaiting = false
  const browse: Broker.Admin["browse"] = (...args) =>
    Effect.andThen(Effect.sleep(isWaiting ? "1 hour" : 0), own.admin.browse(...args))
  const broker = { ...own, admin: { ...own.admin, browse } }
  const layer = Layer.succeed(Broker.Broker, broker)
  const authorize = Authorization.everybody("root", "purge")
  const console = yield* Console.make({
    brokers: [{ name: "local", queues: World.queues, layer, secrets: [] }],
    audit: () => {},
    authorize
  })
  const world = World.browser(console)
  /** Where a form leads to, once the job there has ended. */
  const ended = (arrived: World.Arrived) => world.settled(arrived.headers.get("location")!)
  const stopped = (arrived: World.Arrived) =>
    Effect.gen(function* () {
      const path = arrived.headers.get("location")!
      yield* world.submit(yield* world.get(path), "/stop")
      yield* TestClock.adjust("2 hours")
      return yield* world.settled(path)
    })
  const causes = yield* world.settled(World.deadLetters)
  const cause = yield* world.get(World.linkTo(causes, "/group"))
  const left = Effect.map(own.admin.counts("orders.dlq"), ({ ready }) => ready)
  return { ...world, own, cause, ended, stopped, left, wait: (is: boolean) => void (isWaiting = is) }
})

describe("a job that stopped", () => {
  it.effect("as a redrive says what to do, and counts the same letters again, whoever has looked since", () =>
    Effect.gen(function* () {
      const { cause, ended, own, submit } = yield* made
      const counted = yield* ended(yield* submit(cause, "/plan"))
      assert.match(counted.text, /of other causes<\/dt><dd><span class="strong">1</)
      const page = yield* ended(yield* submit(counted, "/redrive", { how: "stages" }))
      assert.match(page.text, /The job stopped\..*Start a consumer, then go on\..*Count what is left…/s)
      yield* Effect.provideService(
        Consumer.start("orders", {}, () => {}),
        Broker.Broker,
        own
      )
      const again = yield* ended(yield* submit(page, "/plan"))
      assert.match(again.text, /<h1>Dry run: Error: no sku<\/h1>/)
      assert.match(again.text, /would be redriven<\/dt><dd><span class="strong">2</)
      const done = yield* ended(yield* submit(again, "/redrive", { how: "stages" }))
      assert.match(done.text, /succeeded<\/dt><dd><span class="strong">2</)
      // It ends with the last of its own letters, and has not seen all others.
      assert.notInclude(done.text, "of other causes")
      assert.match(done.text, /left here<\/dt><dd><span class="strong">1</)
    })
  )

  it.effect("as a park goes on with the rest", () =>
    Effect.gen(function* () {
      const { cause, ended, left, stopped, submit, wait } = yield* made
      wait(true)
      const page = yield* stopped(yield* submit(cause, "/park"))
      wait(false)
      assert.match(page.text, /The job stopped\..*An operator stopped it\..*Park what is left/s)
      assert.strictEqual(yield* left, 4)
      const done = yield* ended(yield* submit(page, "/park"))
      assert.match(done.text, /<h1>Park: Error: no sku<\/h1>/)
      assert.strictEqual(yield* left, 1)
    })
  )

  it.effect("as a purge goes on with the rest, once the queue's name is typed again", () =>
    Effect.gen(function* () {
      const { cause, ended, left, stopped, submit, wait } = yield* made
      wait(true)
      const page = yield* stopped(yield* submit(cause, "/purge", { name: "orders.dlq" }))
      wait(false)
      assert.match(page.text, /The job stopped\..*Purge what is left/s)
      assert.strictEqual((yield* submit(page, "/purge")).status, 400)
      yield* ended(yield* submit(page, "/purge", { name: "orders.dlq" }))
      assert.strictEqual(yield* left, 1)
    })
  )

  it.effect("goes on with no other letters, and with none of a job that is not there", () =>
    Effect.gen(function* () {
      const { cause, left, stopped, submit, wait } = yield* made
      wait(true)
      const page = yield* stopped(yield* submit(cause, "/park"))
      wait(false)
      for (const other of [
        { again: "none" },
        { queue: "mails.dlq" },
        { error: "503" },
        { cause: "0123456789abcdef" }
      ]) {
        assert.strictEqual((yield* submit(page, "/park", other)).status, 409, JSON.stringify(other))
      }
      assert.strictEqual(yield* left, 4)
    })
  )
})

describe("a dry run", () => {
  it.effect("has counted, and done nothing", () =>
    Effect.gen(function* () {
      const { cause, ended, get, submit } = yield* made
      yield* ended(yield* submit(cause, "/plan"))
      const { text } = yield* get("/jobs")
      assert.match(text, /data-label="state">counted<.*data-label="count"><span class="strong">3</s)
    })
  )
})
