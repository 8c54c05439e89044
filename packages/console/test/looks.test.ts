/** Looks and jobs: what they cost, who shares them, and how they end. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError, Consumer, RetryPolicy } from "@requeue/core"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { BrokerSource, Console } from "../src/index.ts"
import * as World from "./world.ts"

describe("a look that the broker counts", () => {
  const counting = { faults: { capabilities: { uncountedBrowse: false } } }

  it.effect("is told before, and does not begin by itself", () =>
    Effect.gen(function* () {
      const { follow, get, publish, settled, submit } = yield* World.make({}, counting)
      yield* publish({ id: "order-1" }, { id: "order-2" })
      const first = yield* get(World.deadLetters)
      assert.include(first.text, "memory counts a browse as a delivery of each letter")
      assert.include(first.text, "No browse yet")
      yield* follow(yield* submit(first, "/look", { limit: "1" }))
      const browsed = yield* settled(World.deadLetters)
      assert.match(browsed.text, /Browsed 1 of 2 letters/)
      const cause = yield* get(World.linkTo(browsed, "/group"))
      assert.include(cause.text, "A dry run counts the letters first. memory counts a browse")
    })
  )

  it.effect("is in the audit, and does not begin without it", () =>
    Effect.gen(function* () {
      const { audit, get, publish, settled, submit } = yield* World.make({}, counting)
      yield* publish({ id: "order-1" })
      yield* submit(yield* get(World.deadLetters), "/look", { limit: "100" })
      yield* settled(World.deadLetters)
      const lines = audit.map(({ command, event, outcome }) => [command, event, outcome])
      assert.deepStrictEqual(lines, [
        ["console look", "begin", undefined],
        ["console look", "end", "done"]
      ])
      const full = yield* World.make({ audit: () => Promise.reject(new Error("the disk is full")) }, counting)
      yield* full.publish({ id: "order-1" })
      yield* full.submit(yield* full.get(World.deadLetters), "/look", { limit: "100" })
      const { text } = yield* full.settled(World.deadLetters)
      assert.match(text, /The browse failed\..*the disk is full/)
      assert.notInclude(text, "from the shop")
    })
  )

  it.effect("takes no more letters than a look can", () =>
    Effect.gen(function* () {
      const { get, submit } = yield* World.make({}, counting)
      const page = yield* get(World.deadLetters)
      for (const limit of ["0", "100001", "many", "-1", "1e9"]) {
        assert.strictEqual((yield* submit(page, "/look", { limit })).status, 400, limit)
      }
    })
  )
})

describe("two operators", () => {
  it.effect("share a look, and one job at a time works on a queue", () =>
    Effect.gen(function* () {
      const { get, publish, settled, submit } = yield* World.make()
      yield* publish({ id: "order-1" })
      const causes = yield* settled(World.deadLetters)
      const plan = yield* submit(causes, "/plan")
      const counted = yield* settled(plan.headers.get("location")!)
      const first = yield* submit(counted, "/redrive", { how: "stages" })
      const second = yield* submit(counted, "/redrive", { how: "stages" })
      assert.strictEqual(second.status, 409)
      assert.match(second.text, /job \w+ of local works on orders\.dlq/)
      yield* submit(yield* get(first.headers.get("location")!), "/stop")
      const stopped = yield* settled(first.headers.get("location")!)
      assert.include(stopped.text, "An operator stopped it.")
    })
  )
})

describe("a redrive", () => {
  const counted = Effect.gen(function* () {
    const world = yield* World.make()
    yield* world.publish({ id: "order-1" })
    const causes = yield* world.settled(World.deadLetters)
    const plan = yield* world.submit(causes, "/plan")
    return { ...world, causes, plan: yield* world.settled(plan.headers.get("location")!) }
  })

  it.effect("takes no more letters than its dry run has counted", () =>
    Effect.gen(function* () {
      const { broker, plan, publish, settled, submit } = yield* counted
      assert.include(plan.text, "Redrive 1 letter<")
      yield* publish(...Array.from({ length: 500 }, (_, index) => ({ id: `later-${index}` })))
      const begun = yield* submit(plan, "/redrive", { how: "at-once" })
      assert.match((yield* settled(begun.headers.get("location")!)).text, /published<\/dt><dd><span class="strong">1</)
      assert.strictEqual((yield* broker.admin.counts("orders.dlq")).ready, 500)
    })
  )

  it.effect("follows a dry run of the same letters, and each dry run is followed by one", () =>
    Effect.gen(function* () {
      const { broker, causes, get, plan, post, publish, settled, submit } = yield* counted
      yield* publish({ id: "order-2" })
      const token = /name="token" value="([^"]+)"/.exec(causes.text)![1]!
      const unplanned = { broker: "local", queue: "orders.dlq", how: "at-once", token }
      assert.strictEqual((yield* post("/redrive", unplanned)).status, 409)
      const other = { how: "at-once", cause: "0123456789abcdef" }
      assert.strictEqual((yield* submit(plan, "/redrive", other)).status, 409)
      const begun = yield* submit(plan, "/redrive", { how: "at-once" })
      yield* settled(begun.headers.get("location")!)
      const again = yield* submit(plan, "/redrive", { how: "at-once" })
      assert.strictEqual(again.status, 409)
      assert.match(again.text, /was followed by the redrive \w+/)
      assert.strictEqual((yield* broker.admin.counts("orders.dlq")).ready, 1)
      const jobs = yield* get("/jobs")
      const links = [...jobs.text.matchAll(/href="(\/job[?][^"]+)"/g)].map(([, href]) => href!)
      assert.include((yield* get(links[1]!)).text, `<a href="${links[0]!}">Open the redrive that followed</a>`)
    })
  )
})

describe("a job", () => {
  for (const [countsRemedy, words] of [
    [undefined, "the job waits until the outcome of its letters is known, 1m at most."],
    [
      "Give the option eyes",
      "the job waits 1m, or until all its letters have come back: with this configuration, memory does not report whether redriven letters were handled. Give the option eyes."
    ]
  ] as const) {
    it.effect(
      `says before, and while it works, how long it waits${countsRemedy === undefined ? "" : ", and why"}`,
      () =>
        Effect.gen(function* () {
          const { follow, publish, settled, submit } = yield* World.make(
            {},
            { faults: { capabilities: { countsRemedy } } }
          )
          yield* publish({ id: "order-1" })
          const causes = yield* settled(World.deadLetters)
          const counted = yield* settled((yield* submit(causes, "/plan")).headers.get("location")!)
          assert.include(counted.text, `After each stage, ${words}`)
          const begun = yield* submit(counted, "/redrive", { how: "stages" })
          yield* TestClock.adjust("1 second")
          const running = yield* follow(begun)
          assert.include(running.text, `After each stage, ${words}`)
        })
    )
  }

  it.effect("that nobody consumes after ends by itself, and says why", () =>
    Effect.gen(function* () {
      const { publish, settled, submit } = yield* World.make()
      yield* publish({ id: "order-1" }, { id: "order-2" })
      const plan = yield* submit(yield* settled(World.deadLetters), "/plan")
      const begun = yield* submit(yield* settled(plan.headers.get("location")!), "/redrive", { how: "stages" })
      const ended = yield* settled(begun.headers.get("location")!)
      assert.include(ended.text, "no letter leaves their queue. Start a consumer, then go on.")
    })
  )

  it.effect("leaves letters that were redriven three times, and says so before", () =>
    Effect.gen(function* () {
      const { publish, settled, submit } = yield* World.make()
      yield* publish({ id: "order-1", redrives: 3 }, { id: "order-2" })
      const plan = yield* submit(yield* settled(World.deadLetters), "/plan")
      const counted = yield* settled(plan.headers.get("location")!)
      assert.match(counted.text, /redriven 3 times before<\/dt><dd><span class="alarm">1</)
      assert.include(counted.text, "Redrive 1 letter<")
    })
  )

  it.effect("leaves letters whose queue was deleted, and makes no queue", () =>
    Effect.gen(function* () {
      const { broker, settled, submit } = yield* World.make()
      const letter = World.outgoing({ id: "order-1" }, 0)
      const deadLetter = { ...letter.metadata.deadLetter!, queue: "gone" }
      yield* broker.publish([{ ...letter, metadata: { ...letter.metadata, deadLetter } }])
      const plan = yield* submit(yield* settled(World.deadLetters), "/plan")
      const counted = yield* settled(plan.headers.get("location")!)
      const begun = yield* submit(counted, "/redrive", { how: "stages" })
      yield* settled(begun.headers.get("location")!)
      assert.strictEqual((yield* broker.admin.counts("orders.dlq")).ready, 1)
      assert.isTrue((yield* broker.admin.counts("gone")).isMissing)
    })
  )

  it.effect(
    "sees letters come back to the dead-letter queue of the queue that they go to, which it may have to make",
    () =>
      Effect.gen(function* () {
        const deadLetter = { queue: "mails.dlq", routes: { permanent: "orders.dlq" } }
        const retry = RetryPolicy.make({ maxRetries: 0, deadLetter })
        const queues = [...World.queues, BrokerSource.queueOf({ name: "letters", options: { retry } })]
        const own = yield* MemoryBroker.make()
        const letter = World.outgoing({ id: "letter-1" }, 0)
        const origin = { ...letter.metadata.deadLetter!, queue: "letters" }
        yield* own.publish([{ ...letter, metadata: { ...letter.metadata, deadLetter: origin } }])
        const layer = Layer.succeed(Broker.Broker, own)
        yield* Effect.provide(
          Consumer.start("letters", { retry }, () => Effect.fail(new Error("503"))),
          layer
        )
        const source = { name: "local", queues, layer, secrets: [] }
        const { settled, submit } = World.browser(yield* Console.make({ brokers: [source], audit: () => {} }))
        const plan = yield* submit(yield* settled(World.deadLetters), "/plan")
        const begun = yield* submit(yield* settled(plan.headers.get("location")!), "/redrive", { how: "stages" })
        const { text } = yield* settled(begun.headers.get("location")!)
        assert.match(text, /came back<\/dt><dd>[^0-9]*1</, text.slice(text.indexOf("<main")))
      })
  )

  it.effect("is refused a rate that is none, and a way that is not known", () =>
    Effect.gen(function* () {
      const { broker, publish, settled, submit } = yield* World.make()
      yield* publish({ id: "order-1" })
      const plan = yield* submit(yield* settled(World.deadLetters), "/plan")
      const counted = yield* settled(plan.headers.get("location")!)
      for (const fields of [{ how: "stages", rate: "fast" }, { how: "stages", rate: "-1" }, { how: "somehow" }]) {
        assert.strictEqual((yield* submit(counted, "/redrive", fields)).status, 400)
      }
      assert.strictEqual((yield* broker.admin.counts("orders.dlq")).ready, 1)
    })
  )

  it.effect("ends with the console, and its audit says that it was stopped", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { audit, publish, settled, submit } = yield* Scope.provide(World.make(), scope)
      yield* publish({ id: "order-1" })
      const plan = yield* submit(yield* settled(World.deadLetters), "/plan")
      yield* submit(yield* settled(plan.headers.get("location")!), "/redrive", { how: "stages" })
      yield* Scope.close(scope, Exit.void)
      assert.deepInclude(audit.at(-1)!, { event: "end", command: "console redrive", outcome: "abort" })
    })
  )
})

describe("a connection", () => {
  it.effect("is closed behind the jobs that use it", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      yield* own.publish([World.outgoing({ id: "order-1" }, 0)])
      // A redrive makes no queue that a letter names.
      yield* own.publish([{ ...World.outgoing({ id: "order-0" }, 0), queue: "orders" }])
      const told: Array<string> = []
      const layer = Layer.effect(
        Broker.Broker,
        Effect.acquireRelease(Effect.succeed(own), () => Effect.sync(() => void told.push("closed")))
      )
      const scope = yield* Scope.make()
      const audit = (line: string) => void told.push((JSON.parse(line) as { readonly event: string }).event) // Our own line.
      const brokers = [{ name: "local", queues: World.queues, layer, secrets: [] }]
      const { settled, submit } = World.browser(yield* Scope.provide(Console.make({ brokers, audit }), scope))
      const plan = yield* submit(yield* settled(World.deadLetters), "/plan")
      yield* submit(yield* settled(plan.headers.get("location")!), "/redrive", { how: "stages" })
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(told, ["begin", "end", "begin", "end", "closed"])
    })
  )
})

describe("a look whose broker fails", () => {
  it.effect("says so, and another one may begin", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      const detail = "the connection was lost"
      const lost = new BrokerError.BrokerError({
        broker: "memory",
        operation: "look",
        reason: "ConnectionLost",
        detail
      })
      const failing = { ...own, admin: { ...own.admin, browse: () => Effect.fail(lost) } }
      const source = { name: "local", queues: World.queues, layer: Layer.succeed(Broker.Broker, failing), secrets: [] }
      const { get, settled } = World.browser(yield* Console.make({ brokers: [source], audit: () => {} }))
      yield* own.publish([World.outgoing({ id: "order-1" }, 0)])
      const page = yield* settled(World.deadLetters)
      assert.match(page.text, /The browse failed\..*the connection was lost/)
      assert.include((yield* get(World.deadLetters)).text, "Browse again")
    })
  )

  it.effect("has what it has found, also where the broker does not answer any more", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      let isDown = false
      const lost = new BrokerError.BrokerError({
        broker: "memory",
        operation: "counts",
        reason: "ConnectionFailed",
        detail: "it is away"
      })
      const counts: Broker.Admin["counts"] = (queue) => (isDown ? Effect.fail(lost) : own.admin.counts(queue))
      const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, counts } })
      const source = { name: "local", queues: World.queues, layer, secrets: [] }
      const { get, settled } = World.browser(yield* Console.make({ brokers: [source], audit: () => {} }))
      yield* own.publish([World.outgoing({ id: "order-1" }, 0)])
      yield* settled(World.deadLetters)
      isDown = true
      const { status, text } = yield* get(World.deadLetters)
      assert.strictEqual(status, 200)
      assert.match(text, /local does not answer\..*it is away/)
      assert.match(text, /Browsed all 1 letter\b/)
      assert.include(text, "from the shop")
    })
  )
})

describe("bodies of a queue", () => {
  it.effect("are looked for one after the other, and a broker that hangs is not waited for", () =>
    Effect.gen(function* () {
      const own = yield* MemoryBroker.make()
      const known = { most: 0, now: 0, hangs: false }
      // As a broker whose look gives its letters to no other one.
      const browse: Broker.Admin["browse"] = (...args) =>
        Effect.gen(function* () {
          known.most = Math.max(known.most, ++known.now)
          if (known.hangs) yield* Effect.uninterruptible(Effect.sleep("1 hour"))
          yield* Effect.sleep("10 millis")
          known.now--
          return yield* own.admin.browse(...args)
        })
      const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, browse } })
      const source = { name: "local", queues: World.queues, layer, secrets: [] }
      const { get, settled, submit } = World.browser(yield* Console.make({ brokers: [source], audit: () => {} }))
      yield* own.publish([World.outgoing({ id: "order-1", body: "the-body" }, 0)])
      const cause = yield* get(World.linkTo(yield* settled(World.deadLetters), "/group"))
      const page = yield* get(World.linkTo(cause, "/letter"))
      const reading = (count: number, step: Duration.Input) =>
        Effect.gen(function* () {
          const all = Effect.all(
            Array.from({ length: count }, () => submit(page, "/letter")),
            { concurrency: count }
          )
          const asked = yield* Effect.forkChild(all, { startImmediately: true })
          for (let n = 0; n < 40; n++) yield* TestClock.adjust(step)
          return yield* Fiber.join(asked)
        })
      for (const { text } of yield* reading(5, "10 millis")) assert.include(text, "the-body")
      assert.strictEqual(known.most, 1)
      known.hangs = true
      for (const { status } of yield* reading(1, "1 second")) assert.strictEqual(status, 502)
    })
  )
})
