/** The overview as it changes: what is sent to who watches, whom it asks and how often, and that it rests. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError, type Message } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Console } from "../src/index.ts"
import * as World from "./world.ts"

/** A console whose broker counts the rounds in which it is asked. */
const counted = Effect.gen(function* () {
  const own = yield* MemoryBroker.make()
  let rounds = 0
  const backlog: Broker.Admin["backlog"] = (request) => {
    if (request.queue === "orders") rounds++
    return own.admin.backlog!(request)
  }
  const broker = { ...own, admin: { ...own.admin, backlog } }
  const layer = Layer.succeed(Broker.Broker, broker)
  const source = { name: "local", queues: World.queues, layer, secrets: [] }
  const console = yield* Console.make({ brokers: [source], audit: () => {} })
  const publish = (id: string, headers: Message.Headers = {}) =>
    Effect.orDie(own.publish([World.outgoing({ id, headers }, 0)]))
  return { console, publish, rounds: () => rounds, ...World.browser(console) }
})

/** Lets time pass in steps, between which all that is ready runs. */
const pass = (millis: number) =>
  Effect.forEach(Array.from({ length: millis / 250 }), () => TestClock.adjust("250 millis"))

/** Opens the live part, and answers all that has come so far. */
const watched = ({ fetch }: Console.Console) =>
  Effect.gen(function* () {
    const { body } = yield* Effect.promise(() =>
      fetch(new Request(`${World.origin}/live/overview`, { headers: { host: "localhost:4747" } }), {
        address: "127.0.0.1"
      })
    )
    const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ""
    const reading = (async () => {
      for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value
    })()
    return {
      /** What has come since this was asked last. */
      news: Effect.sync(() => {
        const told = text
        text = ""
        return told
      }),
      close: Effect.promise(async () => {
        await reader.cancel()
        await reading
      })
    }
  })

const settled = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

describe("the overview", () => {
  it.effect("sends all that a page may lack, and then the rows that have changed alone", () =>
    Effect.gen(function* () {
      const { console, get, publish } = yield* counted
      yield* get("/")
      const { close, news } = yield* watched(console)
      yield* pass(500)
      yield* settled
      const first = yield* news
      assert.match(first, /^event: parts\n/)
      for (const id of ["b0", "b0q0", "b0q1", "remarks"]) assert.include(first, `id="${id}"`)
      yield* publish("order-1")
      yield* pass(6000)
      yield* settled
      const second = yield* news
      assert.match(second, /id="b0q0"[^]*data-label="dead"><svg[^]*?<a[^>]*>1</)
      assert.notInclude(second, `id="remarks"`)
      yield* close
    })
  )

  it.effect("is asked each 5 seconds while somebody watches, however many do, each 15 after that, and then rests", () =>
    Effect.gen(function* () {
      const { console, get, rounds } = yield* counted
      yield* get("/")
      const all = yield* Effect.forEach([1, 2, 3], () => watched(console))
      yield* pass(30_000)
      assert.isAtLeast(rounds(), 5)
      assert.isAtMost(rounds(), 7)
      for (const { close } of all) yield* close
      const before = rounds()
      yield* pass(60_000)
      assert.isAtLeast(rounds() - before, 3)
      assert.isAtMost(rounds() - before, 5)
      yield* pass(15 * 60_000)
      const after = rounds()
      yield* pass(15 * 60_000)
      assert.strictEqual(rounds(), after)
      assert.strictEqual((yield* get("/")).status, 200)
      assert.strictEqual(rounds(), after + 1)
    })
  )

  it.effect("asks a broker that is down each 2 seconds while somebody watches, however long it lets them wait", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      const gone = new BrokerError.BrokerError({
        broker: "memory",
        operation: "connect",
        reason: "ConnectionFailed",
        detail: "it is down"
      })
      let isDown = true
      const layer = Layer.effect(
        Broker.Broker,
        Effect.suspend(() => (isDown ? Effect.delay(Effect.fail(gone), "3 seconds") : Effect.succeed(own)))
      )
      const console = yield* Console.make({
        brokers: [{ name: "local", queues: World.queues, layer, secrets: [] }],
        audit: () => {}
      })
      const opened = yield* Effect.forkChild(watched(console), { startImmediately: true })
      yield* pass(1000)
      const { close, news } = yield* Fiber.join(opened)
      yield* pass(30_000)
      yield* settled
      assert.include(yield* news, "it is down")
      isDown = false
      yield* pass(8000)
      yield* settled
      const last = yield* news
      assert.match(last.slice(last.lastIndexOf('id="b0"')), /class="dot"/)
      yield* close
    })
  )

  it.effect("shows how numbers were, once it has seen more than one", () =>
    Effect.gen(function* () {
      const { get, publish } = yield* counted
      assert.notInclude((yield* get("/")).text, `role="img"`)
      yield* publish("order-1")
      yield* pass(31_000)
      assert.match(
        (yield* get("/")).text,
        // The number ends below the end of its heading.
        /data-label="dead"><svg[^>]*><title>from 0 to 1 in 30s<\/title>.*?<\/svg><a[^>]*>1<\/a><\/td>/
      )
    })
  )
})
