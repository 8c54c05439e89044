/** Events as they happen: of consumers, of operators, and of what changes in the answers of brokers. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Backoff, Broker, BrokerError, Consumer, Producer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Authorization, Console } from "../src/index.ts"
import * as World from "./world.ts"

const authorize = Authorization.everybody("root", "purge")

/** The rows of a page: queue, event, error and message. */
const rows = ({ text }: World.Arrived): ReadonlyArray<ReadonlyArray<string>> =>
  [...text.matchAll(/<tr>(.*?)<\/tr>/gs)].slice(1).map(([, row]) =>
    [...row!.matchAll(/<t[dh][^>]*>(.*?)<\/t[dh]>/gs)].slice(1).map(([, cell]) =>
      World.decoded(
        cell!
          .replaceAll(/<[^>]*>/g, " ")
          .replaceAll(/\s+/g, " ")
          .trim()
      )
    )
  )

describe("events", () => {
  it.effect("of consumers are those that go wrong, the newest first", () =>
    Effect.gen(function* () {
      const { broker, console, get } = yield* World.make({ authorize })
      assert.include((yield* get("/events")).text, "No consumer in this process reports events")
      const program = Effect.gen(function* () {
        const retry = RetryPolicy.make({ backoff: Backoff.constant(1000), maxRetries: 1 })
        const options = { retry, onEvent: console.onEvent("local") }
        yield* Consumer.start("orders", options, ({ id }) =>
          id === "order-1" ? Effect.fail(new Error("HTTP 503")) : Effect.void
        )
        const orders = yield* Producer.make("orders")
        yield* orders.send({}, { id: "order-1" })
        yield* orders.send({}, { id: "order-2" })
        yield* TestClock.adjust("5 seconds")
      })
      yield* Effect.provideService(program, Broker.Broker, broker)
      const page = yield* get("/events")
      // It would be loaded again while somebody chooses.
      assert.notInclude(page.text, `http-equiv="refresh"`)
      assert.deepStrictEqual(rows(page), [
        ["orders local", "dead letter in orders.dlq, retries-exhausted", "Error: HTTP 503", "order-1"],
        ["orders local", "attempt 2 failed", "Error: HTTP 503", "order-1"],
        ["orders local", "retry after 1s", "Error: HTTP 503", "order-1"],
        ["orders local", "attempt 1 failed", "Error: HTTP 503", "order-1"]
      ])
      const bad = yield* get("/events?kind=bad")
      assert.deepStrictEqual(
        rows(bad).map(([, words]) => words),
        ["dead letter in orders.dlq, retries-exhausted"]
      )
      const mails = yield* get(`/events?${new URLSearchParams({ of: JSON.stringify(["local", "mails"]) }).toString()}`)
      assert.deepStrictEqual(rows(mails), [])
    })
  )

  it.effect("of operators have who it was, and how it ended", () =>
    Effect.gen(function* () {
      const { get, publish, settled, submit } = yield* World.make({ authorize })
      yield* publish({ id: "order-1" })
      const causes = yield* settled(World.deadLetters)
      const begun = yield* submit(causes, "/plan")
      const counted = yield* settled(begun.headers.get("location")!)
      assert.deepStrictEqual(rows(yield* get("/events?kind=Operation")), [
        ["orders.dlq local", "console plan of root ended: done", "", ""],
        ["orders.dlq local", "console plan began, by root", "", ""]
      ])
      // The lines that the audit has of single letters are no events.
      const redrive = yield* submit(counted, "/redrive", { how: "at-once" })
      yield* settled(redrive.headers.get("location")!)
      assert.deepStrictEqual(rows(yield* get("/events?kind=Operation")).slice(0, 2), [
        ["orders.dlq local", "console redrive of root ended: done", "", ""],
        ["orders.dlq local", "console redrive began, by root", "", ""]
      ])
    })
  )

  it.effect("of brokers are changes of their answers, which are asked for while somebody reads", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      yield* World.queueOfLetters(own)
      let [isDown, asked] = [false, 0]
      const lost = new BrokerError.BrokerError({
        broker: "memory",
        operation: "counts",
        reason: "ConnectionFailed",
        detail: "it is away"
      })
      const counts: Broker.Admin["counts"] = (queue) => {
        asked++
        return isDown ? Effect.fail(lost) : own.admin.counts(queue)
      }
      const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, counts } })
      const brokers = [{ name: "local", queues: World.queues, layer, secrets: [] }]
      const { get } = World.browser(yield* Console.make({ brokers, audit: () => {}, authorize }))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(asked, 0)
      yield* get("/events")
      // The first answers.
      yield* get("/")
      yield* TestClock.adjust("1 second")
      yield* own.publish([World.outgoing({ id: "order-1" }, 0), World.outgoing({ id: "order-2" }, 0)])
      yield* TestClock.adjust("6 seconds")
      isDown = true
      yield* TestClock.adjust("6 seconds")
      isDown = false
      yield* TestClock.adjust("6 seconds")
      assert.deepStrictEqual(
        rows(yield* get("/events")).map(([queue, words]) => [queue, words]),
        [
          ["local", "answers again"],
          ["local", "does not answer"],
          ["orders local", "dead letters 0 → 2"]
        ]
      )
      // The overview is kept up to date for a quarter of an hour.
      yield* TestClock.adjust("16 minutes")
      const before = asked
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(asked, before)
    })
  )

  it.effect("stay where they are when they are paused, and go on", () =>
    Effect.gen(function* () {
      const { console, get } = yield* World.make({ authorize })
      const hook = console.onEvent("local")
      const left = { _tag: "BackoffLeft", queue: "orders", because: "handler" } as const
      hook(left)
      const page = yield* get("/events")
      assert.include(page.text, "data-live")
      hook({ ...left, queue: "mails" })
      const paused = yield* get(World.linkTo(page, "/events"))
      assert.notInclude(paused.text, "data-live")
      assert.lengthOf(rows(paused), 1)
      const [, path] = /href="(\/events)">Continue</.exec(paused.text)!
      assert.lengthOf(rows(yield* get(path!)), 2)
    })
  )

  it.effect("come by a stream, as tables of one a second at most", () =>
    Effect.gen(function* () {
      const { console } = yield* World.make({ authorize })
      const hook = console.onEvent("local")
      const request = new Request(`${World.origin}/live/events`, { headers: { host: "localhost:4747" } })
      const response = yield* Effect.promise(() => console.fetch(request, { address: "127.0.0.1" }))
      const reader = response.body!.getReader()
      const read = Effect.promise(async () => new TextDecoder().decode((await reader.read()).value))
      assert.include(yield* read, "No events yet")
      for (const because of ["handler", "broker"] as const) hook({ _tag: "BackoffLeft", queue: "orders", because })
      const next = yield* Effect.forkChild(read)
      yield* TestClock.adjust("2 seconds")
      assert.lengthOf([...(yield* Fiber.join(next)).matchAll(/resumes/g)], 2)
      yield* Effect.promise(() => reader.cancel())
    })
  )

  it.effect("of a broker that is not there are refused at once", () =>
    Effect.gen(function* () {
      const { console } = yield* World.make()
      assert.throws(
        () => console.onEvent("rabbit"),
        /RangeError|Console\.onEvent: broker must be one of local, got rabbit/
      )
    })
  )
})
