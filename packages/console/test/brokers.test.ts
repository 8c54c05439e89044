/** Brokers that do not answer, and configurations with secrets. */
import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@requeue/config"
import { Broker, BrokerError } from "@requeue/core"
import { MemoryBroker } from "@requeue/adapter-memory"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BrokerSource, Console } from "../src/index.ts"
import * as World from "./world.ts"

const failure = (detail: string) =>
  new BrokerError.BrokerError({ broker: "rabbitmq", operation: "connect", reason: "ConnectionFailed", detail })

const source = (name: string, layer: BrokerSource.BrokerSource["layer"], secrets: ReadonlyArray<string> = []) => ({
  name,
  queues: World.queues,
  layer,
  secrets
})

const consoleOf = (...brokers: ReadonlyArray<BrokerSource.BrokerSource>) =>
  Effect.map(Console.make({ brokers, audit: () => {} }), World.browser)

/** Lets time pass in steps, between which all that is ready runs. */
const pass = (millis: number) => Effect.forEach(Array.from({ length: 20 }), () => TestClock.adjust(millis / 20))

describe("a broker that does not answer", () => {
  it.effect("hides no other one, whether it fails, throws or hangs", () =>
    Effect.gen(function* () {
      const { get } = yield* consoleOf(
        source("well", MemoryBroker.layer()),
        source("failing", Layer.effect(Broker.Broker, Effect.fail(failure("ECONNREFUSED")))),
        source("throwing", Layer.effect(Broker.Broker, Effect.die(new Error("a bug of an adapter")))),
        source("hanging", Layer.effect(Broker.Broker, Effect.never))
      )
      const asked = Effect.forkChild(get("/"), { startImmediately: true })
      const first = yield* asked
      // No page waits longer.
      yield* pass(200)
      const { status, text: early } = yield* Fiber.join(first)
      assert.strictEqual(status, 200)
      assert.match(early, /hanging ?<span class="soft"\s*>2 queues, 2 have not answered yet/)
      yield* pass(2000)
      const later = yield* asked
      yield* pass(200)
      const { text } = yield* Fiber.join(later)
      assert.match(text, /ECONNREFUSED/)
      assert.match(text, /a bug of an adapter/)
      assert.match(text, /no answer within 2s/)
      // No queue was made there.
      assert.match(text, /orders(?:<\/a>)? ?<span class="alarm">missing</)
    })
  )

  it.effect("is connected again when it is back", () =>
    Effect.gen(function* () {
      let isDown = true
      const own = yield* MemoryBroker.make()
      const layer = Layer.effect(
        Broker.Broker,
        Effect.suspend(() => (isDown ? Effect.fail(failure("it is down")) : Effect.succeed(own)))
      )
      const { get } = yield* consoleOf(source("rabbit", layer))
      assert.match((yield* get("/")).text, /it is down/)
      assert.strictEqual((yield* get("/dead-letters?broker=rabbit&queue=orders.dlq")).status, 502)
      isDown = false
      yield* pass(2000)
      assert.notInclude((yield* get("/")).text, "it is down")
    })
  )
})

describe("a broker that has gone away", () => {
  it.effect("has its last numbers shown, with their age, beside why it does not answer", () =>
    Effect.gen(function* () {
      let state: "well" | "down" | "slow" = "well"
      const own = yield* MemoryBroker.make()
      const backlog: Broker.Admin["backlog"] = (request) => {
        if (state === "slow") return Effect.never
        return state === "down" ? Effect.fail(failure("it is down")) : own.admin.backlog!(request)
      }
      const broker = { ...own, admin: { ...own.admin, backlog } }
      const { get } = yield* consoleOf(source("rabbit", Layer.succeed(Broker.Broker, broker)))
      yield* own.publish([World.outgoing({ id: "order-1" }, 0)])
      assert.match((yield* get("/")).text, /data-label="dead"><svg.*?<a[^>]*>1</s)
      state = "down"
      yield* pass(60_000)
      const { text } = yield* get("/")
      assert.match(
        text,
        /the oldest answer<time[^>]*>1m ago<.*The broker does not answer\..*it is down.*data-label="dead"><svg.*?<a[^>]*>1</s
      )
      // It was asked again, and has not answered yet.
      state = "slow"
      yield* pass(40_000)
      const asked = yield* Effect.forkChild(get("/"), { startImmediately: true })
      yield* pass(1000)
      assert.match((yield* Fiber.join(asked)).text, /The broker did not answer<time[^>]*>\d\ds ago<.*it is down/s)
    })
  )
})

describe("a broker that is slow", () => {
  it.effect("has what it has told shown, and is asked once for all who look", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      let asked = 0
      const counts = (queue: string) =>
        Effect.suspend(() => {
          asked++
          // As the call of a driver that cannot be interrupted.
          const isSlow = queue.startsWith("mails")
          return isSlow
            ? Effect.uninterruptible(Effect.delay(own.admin.counts(queue), "10 seconds"))
            : own.admin.counts(queue)
        })
      const slow = { ...own, admin: { ...own.admin, backlog: undefined, counts } }
      const { get } = yield* consoleOf(source("slow", Layer.succeed(Broker.Broker, slow)))
      const both = yield* Effect.forkChild(Effect.all([get("/"), get("/")], { concurrency: 2 }), {
        startImmediately: true
      })
      yield* pass(2000)
      const [first] = yield* Fiber.join(both)
      assert.match(first.text, /2 queues, 1 have not answered yet/)
      assert.match(
        first.text,
        /orders(?:<\/a>)? ?<span class="alarm">missing<.*?data-label="dead"><svg.*?<a[^>]*>missing</s
      )
      assert.strictEqual(asked, 4)
      yield* pass(60_000)
      const again = yield* Effect.forkChild(get("/"), { startImmediately: true })
      yield* pass(2000)
      assert.match((yield* Fiber.join(again)).text, /2 queues, the oldest answer<time[^>]*>\w+ ago/)
    })
  )
})

describe("a secret of the configuration", () => {
  it.effect("is on no page, whatever an adapter says", () =>
    Effect.gen(function* () {
      const text = "amqp://guest:s3cr3t-word@rabbit/ refused s3cr3t-word, as amqp://other:unknown-one@host does"
      const layer = Layer.effect(Broker.Broker, Effect.fail(failure(text)))
      const { get } = yield* consoleOf(source("rabbit", layer, ["s3cr3t-word"]))
      const page = yield* get("/")
      assert.include(page.text, "amqp://guest:***@rabbit/ refused ***, as amqp://other:***@host does")
      assert.notMatch(page.text, /s3cr3t|unknown-one/)
    })
  )

  it.effect("is known from the config file: passwords, and keys among options and parameters", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "requeue-console-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const brokers = { local: { url: "memory://u:pass%40word@host?secretKey=a-secret-key" }, other: "memory:" }
      const document = { broker: "local", brokers, queues: { orders: {}, mails: { name: "outgoing-mails" } } }
      writeFileSync(join(folder, "requeue.config.json"), JSON.stringify(document))
      const config = yield* Configuration.load({ cwd: folder, environment: {} })
      const [local, other] = yield* BrokerSource.ofConfiguration(config)
      assert.deepStrictEqual(
        [other?.name, other?.queues.map(({ name }) => name)],
        ["other", ["orders", "outgoing-mails"]]
      )
      assert.deepStrictEqual(
        local!.queues.map(({ name }) => name),
        ["orders", "outgoing-mails"]
      )
      assert.sameMembers([...local!.secrets], ["pass%40word", "pass@word", "a-secret-key"])
    })
  )
})
