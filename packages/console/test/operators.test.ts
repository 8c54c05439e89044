/** What an operator finds on the pages when a queue, another operator or the broker is in the way. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError, Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Authorization, Console } from "../src/index.ts"
import * as World from "./world.ts"

const authorize = Authorization.everybody("root", "purge")

/** A console on a memory broker of which some functions are replaced. */
const on = (replaced: (own: Broker.Service) => Broker.Service, options: Partial<Console.Options> = {}) =>
  Effect.gen(function* () {
    const own = yield* MemoryBroker.make()
    yield* World.queueOfLetters(own)
    const layer = Layer.succeed(Broker.Broker, replaced(own))
    const brokers = [{ name: "local", queues: World.queues, layer, secrets: ["s3cret-word"] }]
    const world = World.browser(yield* Console.make({ brokers, audit: () => {}, authorize, ...options }))
    /** Where a form leads to, once the job there has ended. */
    const ended = (arrived: World.Arrived) => world.settled(arrived.headers.get("location")!)
    return { ...world, ended, own }
  })

const same = (own: Broker.Service) => own

const letters = (...ids: ReadonlyArray<string>) => ids.map((id) => World.outgoing({ id }, 0))

describe("a dead-letter queue that the broker does not have", () => {
  it.effect("is missing on every page, and is browsed as soon as it exists", () =>
    Effect.gen(function* () {
      const { get, own, settled } = yield* on(same)
      const missing = yield* get(World.deadLetters)
      assert.match(missing.text, /<h1>orders\.dlq\s*<span[^>]*>missing</)
      assert.include(missing.text, "local has no queue orders.dlq")
      assert.notMatch(missing.text, /0 letters|All is well/)
      assert.match((yield* settled("/queue?broker=local&queue=orders")).text, /orders\.dlq<\/a><span[^>]*>missing</)
      const overview = yield* get("/")
      yield* TestClock.adjust("1 second")
      assert.match(`${overview.text}${(yield* get("/")).text}`, /data-label="dead"><svg.*?<a[^>]*>missing</s)
      yield* own.publish(letters("order-1", "order-2"))
      assert.match((yield* settled(World.deadLetters)).text, /2 letters<.*Browsed all 2 letters/s)
    })
  )
})

describe("a failed browse", () => {
  it.effect("is not shown for long once the broker browses again", () =>
    Effect.gen(function* () {
      const error = { broker: "memory", operation: "browse", reason: "QueueMissing", detail: "it was deleted" } as const
      let isGone = true
      const { get, own, settled } = yield* on((broker) => ({
        ...broker,
        admin: {
          ...broker.admin,
          browse: (...args) => (isGone ? Effect.fail(new BrokerError.BrokerError(error)) : broker.admin.browse(...args))
        }
      }))
      yield* own.publish(letters("order-1"))
      assert.match((yield* settled(World.deadLetters)).text, /The browse failed\..*it was deleted/)
      // A page that reloads itself does not browse again and again.
      assert.include((yield* get(World.deadLetters)).text, "The browse failed.")
      isGone = false
      yield* TestClock.adjust("5 seconds")
      const { text } = yield* settled(World.deadLetters)
      assert.include(text, "Browsed all 1 letter")
      assert.notInclude(text, "The browse failed.")
    })
  )
})

describe("letters that a reader holds", () => {
  it.effect("are beside the count, alike on all pages", () =>
    Effect.gen(function* () {
      const { get, own, settled } = yield* on((broker) => ({
        ...broker,
        admin: {
          ...broker.admin,
          counts: (queue) =>
            Effect.map(broker.admin.counts(queue), (counts) =>
              queue === "orders.dlq" ? { ...counts, inFlight: 2, isRead: true, isMissing: false } : counts
            )
        }
      }))
      yield* own.publish(letters("order-1"))
      yield* get("/")
      yield* TestClock.adjust("1 second")
      for (const path of ["/", World.deadLetters, "/queue?broker=local&queue=orders"]) {
        const { text } = path === "/" ? yield* get(path) : yield* settled(path)
        assert.match(
          text,
          />1<\/a><span[^>]*>\+ 2 held by a reader|1 letter(?:<\/span>)?<span[^>]*>\+ 2 held by a reader/,
          path
        )
      }
    })
  )
})

describe("a second operator", () => {
  it.effect("sees the running job on the page of the queue, and a link to it where a job is refused", () =>
    Effect.gen(function* () {
      const { ended, get, own, settled, submit } = yield* on(same)
      yield* own.publish(letters("order-1", "order-2"))
      const counted = yield* ended(yield* submit(yield* settled(World.deadLetters), "/plan"))
      const begun = yield* submit(counted, "/redrive", { how: "stages" })
      const job = begun.headers.get("location")!
      const page = yield* get(World.deadLetters)
      assert.match(page.text, /A job works on this queue\..*redrive of all letters, by root/s)
      assert.strictEqual(World.linkTo(page, "/job"), job)
      const refused = yield* submit(page, "/plan")
      assert.strictEqual(refused.status, 409)
      assert.strictEqual(World.linkTo(refused, "/job"), job)
    })
  )

  it.effect("reads why the browse of another operator is out of date", () =>
    Effect.gen(function* () {
      const world = yield* World.make({ authorize }, { faults: { capabilities: { uncountedBrowse: false } } })
      const { get, publish, settled, submit } = world
      yield* publish({ id: "order-1" }, { id: "order-2" })
      yield* submit(yield* get(World.deadLetters), "/look", { limit: "100" })
      const browsed = yield* settled(World.deadLetters)
      const cause = yield* get(World.linkTo(browsed, "/group"))
      const begun = yield* submit(yield* get(World.linkTo(cause, "/letter")), "/park")
      yield* settled(begun.headers.get("location")!)
      const { text } = yield* get(World.deadLetters)
      assert.match(
        text,
        /The browse by root,.*is out of date: ?<a href="\/job\?id=\w+">job \w+<\/a> ?has worked on the queue/s
      )
      assert.notInclude(text, "No browse yet")
    })
  )
})

describe("a redrive that goes on", () => {
  it.effect("passes over the letters that came back from it, and links to them", () =>
    Effect.gen(function* () {
      const { ended, own, settled, submit } = yield* on(same)
      yield* own.publish(letters("order-1", "order-2", "order-3"))
      const handler = () => Effect.fail(new Error("503 from the shop"))
      yield* Effect.provideService(
        Consumer.start("orders", { retry: RetryPolicy.make({ maxRetries: 0 }) }, handler),
        Broker.Broker,
        own
      )
      const counted = yield* ended(yield* submit(yield* settled(World.deadLetters), "/plan"))
      const stopped = yield* ended(yield* submit(counted, "/redrive", { how: "stages", stages: "2", stopAt: "25" }))
      assert.match(stopped.text, /The job stopped\..*More than 25 % of a stage came back/s)
      assert.match(
        stopped.text,
        /href="\/dead-letters\?[^"]*since=[^"]+"\s*>Letters dead-lettered since the redrive began/
      )
      const again = yield* ended(yield* submit(stopped, "/plan"))
      assert.match(again.text, /would be redriven<\/dt><dd><span class="strong">1</)
      assert.match(again.text, /came back from this redrive<\/dt><dd><span class="alarm">2</)
      const further = yield* ended(yield* submit(again, "/redrive", { how: "at-once" }))
      assert.match(further.text, /published<\/dt><dd><span class="strong">1</)
    })
  )

  it.effect("refuses stages and percentages that are wrong, next to their fields", () =>
    Effect.gen(function* () {
      const { ended, own, settled, submit } = yield* on(same)
      yield* own.publish(letters("order-1"))
      const counted = yield* ended(yield* submit(yield* settled(World.deadLetters), "/plan"))
      for (const [field, value] of [
        ["stages", "1, many"],
        ["stages", "0"],
        ["stopAt", "101"],
        ["rate", "fast"]
      ] as const) {
        const { status, text } = yield* submit(counted, "/redrive", { how: "stages", [field]: value })
        assert.strictEqual(status, 400)
        assert.match(text, new RegExp(`name="${field}"\\s+value="${value}"[^>]*aria-describedby="wrong-${field}"`))
        assert.match(text, new RegExp(`id="wrong-${field}">${field} must be `))
      }
    })
  )
})

describe("letters that the broker refuses", () => {
  it.effect("are named with their error, and the job is not simply done", () =>
    Effect.gen(function* () {
      const refusal = new BrokerError.BrokerError({
        broker: "memory",
        operation: "publish",
        reason: "BodyTooLarge",
        detail: "the queue is full, says s3cret-word",
        remedy: "Consume first"
      })
      let isFull = false
      const { ended, get, own, settled, submit } = yield* on(
        (broker) => ({
          ...broker,
          publish: (messages) => (isFull ? Effect.fail(refusal) : broker.publish(messages))
        }),
        { redact: (content) => ({ ...content, id: content.id?.replace("tenant", "hidden") ?? "" }) }
      )
      yield* own.publish(letters("tenant-1", "tenant-2"))
      const counted = yield* ended(yield* submit(yield* settled(World.deadLetters), "/plan"))
      isFull = true
      const { text } = yield* ended(yield* submit(counted, "/redrive", { how: "at-once" }))
      assert.include(text, "done, 2 refused")
      assert.match(text, /hidden-1<\/th>.*refused<.*the queue is full/s)
      assert.notInclude(text, "tenant-1")
      assert.notInclude(text, "s3cret-word")
      assert.match((yield* get("/jobs")).text, /class="alarm">done, 2 refused</)
    })
  )
})

describe("a purge whose name is wrong", () => {
  for (const [page, action] of [
    [World.deadLetters, "/purge"],
    ["/delayed?broker=local&queue=orders", "/purge-delayed"]
  ] as const) {
    it.effect(`shows its form again, with the error next to the field: ${action}`, () =>
      Effect.gen(function* () {
        const { own, settled, submit } = yield* on(same)
        yield* own.publish(letters("order-1"))
        const wrong = yield* submit(yield* settled(page), action, { name: "orders.dlqq" })
        assert.strictEqual(wrong.status, 400)
        assert.match(wrong.text, /name="name"\s+value="orders\.dlqq"[^>]*aria-describedby="wrong-name"/)
        assert.match(wrong.text, /id="wrong-name">the typed name is not orders/)
        const right = yield* submit(wrong, action, { name: action === "/purge" ? "orders.dlq" : "orders" })
        assert.strictEqual(right.status, 303)
      })
    )
  }
})

describe("a filter that is wrong", () => {
  it.effect("shows its form again, with the error next to the field", () =>
    Effect.gen(function* () {
      const { get } = yield* on(same)
      const { status, text } = yield* get(`${World.deadLetters}&since=never&error=503`)
      assert.strictEqual(status, 400)
      assert.match(text, /name="since"\s+value="never"[^>]*aria-describedby="wrong-since"/)
      assert.match(text, /name="error"\s+value="503"/)
    })
  )
})
