/** The page of a queue: what it says of every form of policy, on every broker, and what it does not let anybody do. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, type BrokerError, RetryPolicy } from "@requeue/core"
import { type Plan } from "@requeue/core/port"
import { adapter as memory, MemoryBroker } from "@requeue/adapter-memory"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { BrokerSource, Console } from "../src/index.ts"
import { forms, hostile, make, operationsOf, pathOf, planners } from "./queueWorld.ts"
import * as World from "./world.ts"

/** A broker that finds this of the plan of `orders`. */
const finding = (inspection: Partial<Plan.Inspection>): BrokerSource.Operations => {
  const { operate, plan } = operationsOf(memory, "memory:")
  return {
    plan,
    operate: Effect.map(operate, (operator) => ({
      ...operator,
      inspect: (asked) => Effect.map(operator.inspect(asked), (found) => ({ ...found, ...inspection }))
    }))
  }
}

describe("the page of a queue", () => {
  it.effect("is linked from its name in the overview, and leads to its dead letters", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      const path = World.linkTo(yield* get("/"), "/queue")
      assert.strictEqual(path, pathOf("memory", "orders"))
      const { status, text } = yield* get(path)
      assert.strictEqual(status, 200)
      assert.include(text, 'href="/dead-letters?broker=memory&amp;queue=orders.dlq"')
    })
  )

  for (const broker of ["memory", ...planners.map(([name]) => name)]) {
    it.effect(`says of each policy what it does, on ${broker}`, () =>
      Effect.gen(function* () {
        const { get } = yield* make({ timeout: 1000 })
        // An outage is that of the policy, whatever the broker.
        const question = broker === "memory" ? { outage: "5" } : {}
        for (const name of Object.keys(forms)) {
          const loading = yield* Effect.forkChild(get(pathOf(broker, name, question)), {
            startImmediately: true
          })
          // What is down answers, or time goes by.
          for (let n = 0; n < 20 && loading.pollUnsafe() === undefined; n++) {
            yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
            yield* TestClock.adjust(100)
          }
          const { status, text } = yield* Fiber.join(loading)
          assert.strictEqual(status, 200, name)
          assert.notMatch(text, /NaN|Infinity|undefined|<img/, name)
          assert.match(text, /Retries.*Failures.*Dead letters.*Acknowledgement.*Batches.*Consumer backoff.*Limits/s)
          assert.strictEqual(/recovered<\/dt>/.test(text), broker === "memory", name)
          assert.strictEqual(text.includes('class="mark"'), name !== "once", name)
          // What the broker cannot have, as a name or as many attempts, has no plan, and the page says why.
          const hasPlan = name !== hostile && (name !== "thousands" || broker !== "sqs")
          if (hasPlan || broker === "memory") assert.include(text, 'class="diagram"', name)
          else assert.match(text, /class="diagram"|This broker cannot have the queue\.<\/b> ?<span>[^<]{20}/, name)
          assert.isBelow(text.length, 120_000, name)
        }
      })
    )
  }

  it.effect("has the numbers of now, what is due next, and whether it is missing", () =>
    Effect.gen(function* () {
      const { broker, get } = yield* make()
      const letter = (delay: number, id: string) => ({ ...World.outgoing({ id }, 0), queue: "orders", delay })
      yield* Effect.orDie(broker.publish([letter(0, "a"), letter(5000, "b"), letter(50_000, "c")]))
      const { text } = yield* get(pathOf("memory", "orders"))
      assert.match(text, /<dt>ready<\/dt><dd><span class="strong">1</)
      assert.match(text, /<dt>in backoff<\/dt><dd><span class="strong">2</)
      assert.match(text, /Due next:\s*1 within 10s, 1 within 1m\./)
      assert.match(text, /quarantined: kept by consumer processes/)
      assert.match((yield* get(pathOf("memory", "fixed"))).text, /fixed ?<span class="alarm">missing</)
    })
  )

  it.effect("is found for queues that are configured, and for no other", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      for (const [broker, queue] of [
        ["memory", "orders.dlq"],
        ["memory", "payroll"],
        ["memory", "__proto__"],
        ["__proto__", "orders"],
        ["", ""]
      ] as const) {
        assert.strictEqual((yield* get(pathOf(broker, queue))).status, 404)
      }
    })
  )

  it.effect("shows a broker that is down as such, with the plan for its newest version", () =>
    Effect.gen(function* () {
      const { get } = yield* make({ timeout: 60_000 })
      const { text } = yield* get(pathOf("rabbitmq", "ladder"))
      assert.match(text, /The broker does not answer\..*ECONNREFUSED 10\.0\.0\.9/)
      assert.match(text, /as on the newest version/)
      assert.match(text, /The queue was not compared with its broker\..*ECONNREFUSED/)
      assert.notInclude(text, "s3cret-word")
    })
  )
})

describe("what a queue needs on its broker", () => {
  const objects = (state: Plan.State): ReadonlyArray<Plan.Inspected> => [
    {
      kind: "queue",
      name: "orders",
      details: "durable",
      state,
      why: state === "different" ? "lazy is true" : undefined
    }
  ]

  it.effect("is told with what helps, where it is missing or different", () =>
    Effect.gen(function* () {
      const missing = yield* make({}, finding({ objects: objects("missing") }))
      const first = yield* missing.get(pathOf("memory", "orders"))
      assert.match(first.text, /0 of 1 object as planned/)
      assert.match(first.text, /1 object missing\..*requeue create --queue orders/)
      const different = yield* make({}, finding({ objects: objects("different") }))
      const second = yield* different.get(pathOf("memory", "orders"))
      assert.match(second.text, /1 object with other settings\..*Requeue never changes an existing object/)
      assert.match(second.text, /durable; lazy is true/)
    })
  )

  it.effect("is not shown object by object where all is as planned, unless somebody asks", () =>
    Effect.gen(function* () {
      const { get } = yield* make({}, finding({ objects: objects("present") }))
      const { text } = yield* get(pathOf("memory", "orders"))
      assert.match(text, /1 of 1 object as planned/)
      assert.notInclude(text, "requeue create")
      assert.strictEqual(text.match(/<table class="panel objects">/g)!.length, 1)
      assert.match(text, /<summary>All objects of the queue<\/summary>\s*<table class="panel objects">/)
    })
  )

  it.effect("has the findings of the adapter, without secrets", () =>
    Effect.gen(function* () {
      const findings: ReadonlyArray<Plan.Finding> = [
        { about: "loss", verdict: "bad", detail: "a leader that dies, amqp://u:s3cret-word@host" },
        { about: "settings", verdict: "unknown", detail: "only the management interface tells" }
      ]
      const { get } = yield* make({}, finding({ findings }))
      const { text } = yield* get(pathOf("memory", "orders"))
      assert.match(text, /<b>loss<\/b> ?<span>a leader that dies, amqp:\/\/u:\*\*\*@host</)
      assert.match(text, /unknown: only the management/)
    })
  )

  it.effect("is asked once for all who look, and again after 10 seconds", () =>
    Effect.gen(function* () {
      let asked = 0
      const { operate, plan } = operationsOf(memory, "memory:")
      const counting = Effect.tap(operate, () => Effect.sync(() => void asked++))
      const { get } = yield* make({}, { plan, operate: counting })
      yield* Effect.all([get(pathOf("memory", "orders")), get(pathOf("memory", "orders"))], { concurrency: 2 })
      assert.strictEqual(asked, 1)
      yield* TestClock.adjust("11 seconds")
      yield* get(pathOf("memory", "orders"))
      assert.strictEqual(asked, 2)
    })
  )

  it.effect("does not hold the page where the broker is slow, and its connection is closed", () =>
    Effect.gen(function* () {
      const [asked, closed] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const { operate, plan } = operationsOf(memory, "memory:")
      const slow = Effect.gen(function* () {
        yield* Effect.addFinalizer(() => Deferred.succeed(closed, undefined))
        const operator = yield* operate
        const inspect = () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
        return {
          ...operator,
          inspect: inspect as (_: unknown) => Effect.Effect<Plan.Inspection, BrokerError.BrokerError>
        }
      })
      const { get } = yield* make({}, { plan, operate: slow })
      const loading = yield* Effect.forkChild(get(pathOf("memory", "orders")), { startImmediately: true })
      yield* Deferred.await(asked)
      yield* TestClock.adjust("2 seconds")
      const { text } = yield* Fiber.join(loading)
      assert.match(text, /The queue was not compared with its broker\..*no answer within 2s/)
      assert.include(text, 'class="diagram"')
      yield* TestClock.adjust("30 seconds")
      yield* Deferred.await(closed)
    })
  )

  it.effect("is not known where the adapter throws, or there is none", () =>
    Effect.gen(function* () {
      const broken = (): never => {
        throw new Error("a mistake of the adapter")
      }
      const { get } = yield* make({}, { plan: broken, operate: Effect.suspend(broken) })
      const { status, text } = yield* get(pathOf("memory", "orders"))
      assert.strictEqual(status, 200)
      assert.match(text, /This broker cannot have the queue\..*a mistake of the adapter/)
      const bare = yield* World.make()
      assert.match(
        (yield* bare.get(pathOf("local", "orders"))).text,
        /its adapter does not report which objects it creates/
      )
    })
  )
})

describe("a simulated outage", () => {
  const ask = (more: Readonly<Record<string, string>>, queue = "orders") => pathOf("memory", queue, more)

  it.effect("tells of dead letters, retries, load and the end, each time the same", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      const { text } = yield* get(ask({ outage: "5", rate: "5" }, "fixed"))
      assert.match(text, /<dt>messages<\/dt><dd><span class="strong">[\d,]{5}/)
      assert.match(text, /<dt>dead letters<\/dt><dd><span class="alarm"/)
      assert.match(text, /<dt>recovered<\/dt><dd><span class="strong">[\dms. ]+<\/span> ?<span class="soft">/)
      assert.match(text, /medians of \d+ simulated outages/)
      assert.strictEqual(text.match(/class="area"/g)!.length, 2)
      const plots = (page: string) => page.slice(page.indexOf('id="outage"'))
      assert.strictEqual(plots((yield* get(ask({ outage: "5", rate: "5" }, "fixed"))).text), plots(text))
    })
  )

  it.effect("keeps what was asked in the form", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      const { text } = yield* get(ask({ outage: "2.5", rate: "7", failing: "30", handler: "250", backoff: "ratio" }))
      for (const [name, value] of Object.entries({ outage: "2.5", rate: "7", failing: "30", handler: "250" })) {
        assert.match(text, new RegExp(`name="${name}"[^>]*value="${value}"`))
      }
      assert.match(text, /<option value="ratio" +selected/)
    })
  )

  it.effect("refuses what is no number, or too much", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      for (const more of [
        { outage: "1e9" },
        { outage: "-1" },
        { outage: "NaN" },
        { outage: "5", rate: "1e400" },
        { outage: "5", rate: "10001" },
        { outage: "5", failing: "101" },
        { outage: "5", handler: "0" },
        { outage: "5", concurrency: "9999999" },
        { outage: "5", backoff: "__proto__" }
      ]) {
        assert.strictEqual((yield* get(ask(more))).status, 400, JSON.stringify(more))
      }
      const { text } = yield* get(ask({ outage: "1440", rate: "10000" }))
      assert.match(text, /The outage was not simulated\..*too many to simulate/)
      assert.match((yield* get(ask({ outage: "5", concurrency: "1" }))).text, /cannot keep up/)
    })
  )

  it.effect("that is too much is cut, and says so", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      const { text } = yield* get(ask({ outage: "1440", rate: "0.5", handler: "1", concurrency: "100" }, "hot"))
      assert.match(text, /The simulation stopped early\./)
      assert.match(text, /unknown: the simulation was too large/)
    })
  )
})

describe("a queue made in JavaScript", () => {
  const retry = { maxRetries: 5, backoff: Backoff.linear("1 second") } as unknown as RetryPolicy.RetryPolicy // As a program without types may have it.

  it("is refused where its policy is not built, and the error names the field", () => {
    assert.throws(
      () => BrokerSource.queueOf({ name: "orders", options: { retry } }),
      RangeError,
      /BrokerSource\.queueOf.*retry must be a policy, made by RetryPolicy\.make/
    )
  })

  it("is refused by the console as well", () => {
    const brokers = (queue: BrokerSource.Queue) => [
      { name: "memory", queues: [queue], layer: MemoryBroker.layer(), secrets: [] }
    ]
    const built = RetryPolicy.make()
    for (const queue of [
      { name: "orders", retry },
      { name: "orders", retry: built, options: { concurrency: 0 } }
    ]) {
      assert.throws(
        () => Console.make({ brokers: brokers(queue), audit: () => {} }),
        RangeError,
        /Console\.make.*(retry|concurrency) must be/
      )
    }
  })
})
