/** Jobs and looks of one console at one queue: a job has the letters for itself, and tells true numbers. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Authorization, Console } from "../src/index.ts"
import * as Downloading from "./downloading.ts"
import * as World from "./world.ts"

/** A broker that is slow, and gives back the letters of a look some time after that was ended. */
const slow = Effect.gen(function* () {
  const own = yield* MemoryBroker.make()
  yield* World.queueOfLetters(own)
  const known = { now: 0, most: 0, takesBack: "50 millis" as "50 millis" | "1 hour" }
  const browse: Broker.Admin["browse"] = (...args) =>
    Effect.acquireRelease(
      Effect.sync(() => void (known.most = Math.max(known.most, ++known.now))),
      () =>
        Effect.delay(
          Effect.sync(() => void known.now--),
          known.takesBack
        )
    ).pipe(Effect.andThen(Effect.sleep("2 seconds")), Effect.andThen(own.admin.browse(...args)))
  const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, browse } })
  const brokers = [{ name: "local", queues: World.queues, layer, secrets: [] }]
  const lines: Array<string> = []
  const audit = (written: string) => void lines.push(written)
  const authorize = Authorization.everybody("root", "purge")
  const console = yield* Console.make({ brokers, audit, authorize })
  yield* own.publish(["order-1", "order-2", "order-3"].map((id) => World.outgoing({ id }, 0)))
  return { console, known, lines, own, ...World.browser(console) }
})

const filtered = `${World.deadLetters}&id=order-1`

describe("a job", () => {
  for (const [action, told] of [
    ["/plan", /Redrive 3 letters</],
    ["/park", /parked<\/dt><dd><span class="strong">3</]
  ] as const) {
    it.effect(`ends the looks of its own console first, and counts all: ${action}`, () =>
      Effect.gen(function* () {
        const { follow, get, known, post, settled } = yield* slow
        // Two looks: one that has letters, and one that waits.
        yield* get(filtered)
        const page = yield* get(World.deadLetters)
        yield* TestClock.adjust("1 second")
        assert.strictEqual(known.now, 1)
        const token = Downloading.tokenOf(page)
        const begun = yield* follow(yield* post(action, { broker: "local", queue: "orders.dlq", token }))
        assert.include(begun.text, "running")
        if (action === "/plan") {
          yield* TestClock.adjust("1 second")
          for (const ended of [filtered, World.deadLetters]) {
            const { text } = yield* get(ended)
            assert.match(text, /The browse failed\..*job \w+ of root ended the browse, because it works on orders\.dlq/)
          }
        }
        const job = World.linkTo(yield* get("/jobs"), "/job")
        assert.match((yield* settled(job)).text, told)
        assert.strictEqual(known.most, 1)
      })
    )
  }

  it.effect("is waited for by looks that begin meanwhile", () =>
    Effect.gen(function* () {
      const { get, known, settled, submit } = yield* slow
      const page = yield* settled(World.deadLetters)
      yield* submit(page, "/plan")
      yield* TestClock.adjust("1 second")
      const waiting = yield* get(filtered)
      assert.include(
        waiting.text,
        "Browsing: no letters yet. A browse waits for the broker, for a job, and for another browse"
      )
      yield* TestClock.adjust("1 second")
      assert.match((yield* settled(World.linkTo(yield* get("/jobs"), "/job"))).text, /Redrive 3 letters</)
      assert.match((yield* settled(filtered)).text, /1 letter found/)
      assert.strictEqual(known.most, 1)
    })
  )

  it.effect("waits for a body that somebody looks for", () =>
    Effect.gen(function* () {
      const { get, known, settled, submit } = yield* slow
      const page = yield* settled(World.deadLetters)
      const letter = yield* get(World.linkTo(yield* get(World.linkTo(page, "/group")), "/letter"))
      const body = yield* Effect.forkChild(submit(letter, "/letter"), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(known.now, 1)
      yield* submit(page, "/plan")
      for (let n = 0; n < 40; n++) yield* TestClock.adjust("100 millis")
      assert.strictEqual((yield* Fiber.join(body)).status, 200)
      assert.match((yield* settled(World.linkTo(yield* get("/jobs"), "/job"))).text, /Redrive 3 letters</)
      assert.strictEqual(known.most, 1)
    })
  )

  it.effect("fails, and does nothing, where a look does not give its letters back", () =>
    Effect.gen(function* () {
      const { get, known, own, settled, submit } = yield* slow
      known.takesBack = "1 hour"
      const page = yield* get(World.deadLetters)
      yield* TestClock.adjust("1 second")
      yield* submit(page, "/park")
      const { text } = yield* settled(World.linkTo(yield* get("/jobs"), "/job"))
      assert.include(text, "a browse in this console has not returned the letters of orders.dlq within 30s")
      assert.strictEqual((yield* own.admin.counts("orders.dlq")).ready, 3)
      // So that the console can close.
      yield* TestClock.adjust("2 hours")
    })
  )
})

describe("an export", () => {
  it.effect("ends a look, and has all letters", () =>
    Effect.gen(function* () {
      const { console, get, known } = yield* slow
      const page = yield* get(World.deadLetters)
      yield* TestClock.adjust("1 second")
      const response = yield* Downloading.ask(console, { token: Downloading.tokenOf(page) })
      const read = yield* Effect.forkChild(Downloading.read(response), { startImmediately: true })
      for (let n = 0; n < 60; n++) yield* TestClock.adjust("100 millis")
      const file = yield* Fiber.join(read)
      assert.isTrue(file.isWhole)
      assert.strictEqual(Downloading.linesOf(file).length, 3)
      assert.strictEqual(known.most, 1)
    })
  )
})
