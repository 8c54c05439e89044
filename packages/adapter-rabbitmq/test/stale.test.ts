/** Which objects of a server are called stale, and which never. */
import { Backoff, RetryPolicy } from "@requeue/core"
import * as Result from "effect/Result"
import { assert, describe, test } from "vitest"
import { RabbitMqOptions, RabbitMqPlan } from "../src/index.ts"
import type { BindingInfo, ExchangeInfo, QueueInfo } from "../src/internal/inspect/management.ts"
import * as Stale from "../src/internal/clean/stale.ts"

const settings = Result.getOrThrow(RabbitMqOptions.decode({}))
const retry = RetryPolicy.make({ backoff: Backoff.constant(1000) })
const plan = RabbitMqPlan.make({ queue: "orders", retry, deadLetterQueues: ["orders.dlq"] }, settings, "4.3.6")
const plans = "objects" in plan ? [plan] : []

const queue = (name: string, args: Readonly<Record<string, unknown>> = {}): QueueInfo => ({
  name,
  type: name.includes(".c.") ? "classic" : "quorum",
  arguments: args,
  policy: {},
  messages: 0,
  unacknowledged: 0
})
const exchange = (name: string, args: Readonly<Record<string, unknown>> = {}): ExchangeInfo => ({
  name,
  type: /\.(deliver|dead)$/.test(name) ? "direct" : "fanout",
  arguments: args
})
const binding = (source: string, to: string, key = "", isToQueue = true): BindingInfo => ({
  source,
  queue: to,
  key,
  arguments: {},
  isToQueue
})

const found = (snapshot: Partial<Stale.Snapshot>, more: Partial<Stale.Wanted> = {}) =>
  Stale.find(
    { queues: [], exchanges: [], bindings: [], ...snapshot },
    { plans, settings, isWhole: true, ...more }
  ).flatMap(({ exchanges, queues }) => [...queues, ...exchanges].map(({ name }) => name))

/** A queue as it is made by us. */
const ours = (name: string): QueueInfo =>
  queue(name, { "x-dead-letter-exchange": "requeue.v1.dead", "x-dead-letter-routing-key": name })

/** The arguments of a rung, as it is made by us. */
const rungOf = (ms: number, prefix = "requeue") => ({
  "x-message-ttl": ms,
  "x-dead-letter-exchange": `${prefix}.v1.deliver`
})

const ofOrders = { "x-dead-letter-exchange": "requeue.v1.deliver", "x-dead-letter-routing-key": "orders" }

describe("a queue is stale", () => {
  test.each([
    ["requeue.v1.q.delay.5000", rungOf(5000)],
    ["requeue.v1.c.delay.1000", rungOf(1000)],
    ["requeue.v1.q.delay.5000.home.theirs", { ...rungOf(5000), "x-dead-letter-exchange": "" }],
    ["requeue.v1.q.level.100.3", { "x-message-ttl": 800, "x-dead-letter-exchange": "requeue.v1.q.level.100.2" }],
    ["requeue.v1.c.level.50.3", { "x-message-ttl": 400, "x-dead-letter-exchange": "requeue.v1.c.level.50.2" }],
    ["requeue.v1.q.level.100.home.theirs", { "x-message-ttl": 100, "x-dead-letter-exchange": "" }],
    ["requeue.v1.c.level.0.home.theirs", { "x-message-ttl": 0, "x-dead-letter-exchange": "" }],
    ["requeue.v1.retry", { "x-dead-letter-exchange": "requeue.v1.post-retry" }],
    ["orders_dlq_5", ofOrders],
    ["orders.wait.v1.500", { ...ofOrders, "x-dead-letter-routing-key": "orders.waiting.v1" }],
    ["orders.waiting.v1", ofOrders],
    ["orders.retry", { ...ofOrders, "x-dead-letter-exchange": "orders.work" }]
  ])("%s", (name, args) => assert.deepStrictEqual(found({ queues: [queue(name, args)] }), [name]))
})

test("a rung that the policy had under other options is stale; levels and the present rungs are not", () => {
  const few = (maxDelayQueues: number, topology: RabbitMqOptions.Topology) => {
    const own = Result.getOrThrow(RabbitMqOptions.decode({ maxDelayQueues, topology }))
    const made = RabbitMqPlan.make({ queue: "orders", retry: RetryPolicy.webhookSender }, own, "4.3.6")
    if (!("objects" in made)) throw made
    return made
  }
  const [former, present] = [few(6, "ladder"), few(10, "auto")]
  const queues = former.objects.flatMap((object) =>
    object._tag === "Queue" ? [queue(object.name, object.arguments)] : []
  )
  const names = (plan: RabbitMqPlan.Plan) =>
    new Set(plan.objects.flatMap((one) => (one._tag === "Queue" ? [one.name] : [])))
  const gone = [...names(former)].filter((name) => name.includes(".delay.") && !names(present).has(name))
  assert.isNotEmpty(gone)
  assert.deepStrictEqual(found({ queues }, { plans: [present] }), gone)
})

describe("a queue is not", () => {
  test.each([
    ["a rung of the policy", "requeue.v1.q.delay.1000", rungOf(1000)],
    ["somebody's, of a rung's name", "requeue.v1.q.delay.5000", {}],
    ["somebody's, of a rung's name, with another delay", "requeue.v1.q.delay.5000", rungOf(4000)],
    ["somebody's, of the name of a queue's own rung", "requeue.v1.q.delay.5000.home.theirs", rungOf(4000)],
    ["somebody's, of a level's name", "requeue.v1.q.level.100.3", { "x-dead-letter-exchange": "theirs" }],
    ["somebody's, of the shared retry queue's name", "requeue.v1.retry", {}],
    ["a level", "requeue.v1.q.level.50.3", {}],
    ["the home of an adopted queue", "requeue.v1.q.level.50.home.theirs", { "x-dead-letter-exchange": "" }],
    [
      "the home of an adopted queue, without a wait",
      "requeue.v1.q.level.0.home.theirs",
      { "x-dead-letter-exchange": "" }
    ],
    ["where the server leaves what has no queue", "requeue.v1.q.undelivered", {}],
    ["the work queue", "orders", ofOrders],
    ["a dead-letter queue", "orders.dlq", ofOrders],
    ["somebody's, of a usual name", "orders.retry", {}],
    ["somebody's, of a usual name, with an exchange of theirs", "orders.retry", { "x-dead-letter-exchange": "theirs" }],
    ["another configuration's own", "payments_dlq_5", { ...ofOrders, "x-dead-letter-routing-key": "payments" }],
    ["of another prefix that was not asked for", "former.v1.q.delay.5000", {}]
  ])("%s", (_, name, args) => assert.deepStrictEqual(found({ queues: [queue(name, args)] }), []))

  test("a shared delay, unless the whole configuration is known", () => {
    const queues = [queue("requeue.v1.q.delay.5000", rungOf(5000)), queue("orders_dlq_5", ofOrders)]
    assert.deepStrictEqual(found({ queues }, { isWhole: false }), ["orders_dlq_5"])
  })
})

describe("of a former prefix", () => {
  const there = {
    queues: [
      queue("former.v1.q.undelivered"),
      queue("former.v1.q.delay.5000", rungOf(5000, "former")),
      queue("orders")
    ],
    exchanges: ["delay.5000", "deliver", "dead", "undelivered"].map((name) =>
      name === "delay.5000"
        ? exchange(`former.v1.q.${name}`)
        : exchange(`former.v1.${name}`, name === "undelivered" ? {} : { "alternate-exchange": "former.v1.undelivered" })
    ),
    bindings: [
      binding("former.v1.undelivered", "former.v1.q.undelivered"),
      binding("former.v1.deliver", "orders", "orders")
    ]
  }

  test("work queues of a service whose names begin like it are not stale, nor are their exchanges", () =>
    assert.deepStrictEqual(
      found(
        { queues: [queue("shop.v1.orders"), queue("shop.v1.orders.dlq")], exchanges: [exchange("shop.v1.events")] },
        { prefix: "shop" }
      ),
      []
    ))

  test("what others have made with such names is not stale", () => {
    const theirs = [
      queue("former.v1.q.delay.7000"),
      queue("former.v1.c.undelivered", { "x-dead-letter-exchange": "theirs" }),
      { ...queue("former.v1.q.delay.8000", rungOf(8000, "former")), type: "classic" as const }
    ]
    const exchanges = [{ ...exchange("former.v1.q.delay.7000"), type: "topic" }]
    assert.deepStrictEqual(found({ queues: theirs, exchanges }, { prefix: "former" }), [])
  })

  test("all is stale when it is asked for, and the exchanges behind others go last", () =>
    assert.deepStrictEqual(found(there, { prefix: "former" }), [
      "former.v1.q.undelivered",
      "former.v1.q.delay.5000",
      "former.v1.q.delay.5000",
      "former.v1.deliver",
      "former.v1.dead",
      "former.v1.undelivered"
    ]))

  test("an exchange to which a queue gives its dead letters stays, with all that is behind it", () => {
    const queues = [...there.queues.slice(0, 2), queue("orders", { "x-dead-letter-exchange": "former.v1.dead" })]
    assert.deepStrictEqual(found({ ...there, queues }, { prefix: "former" }), [
      "former.v1.q.delay.5000",
      "former.v1.q.delay.5000",
      "former.v1.deliver"
    ])
  })
})

describe("a binding", () => {
  const letters = (...bindings: ReadonlyArray<BindingInfo>) =>
    Stale.formerLetters(
      {
        queues: [...["orders.former", "orders.dlq", "payments.dlq"].map(ours), queue("audit")],
        exchanges: [],
        bindings
      },
      { plans, settings, isWhole: true }
    ).map((one) => `${one.source} -> ${one.queue}`)

  test("of a former dead-letter queue is stale; of the present one, of other queues and exchanges it is not", () =>
    assert.deepStrictEqual(
      letters(
        binding("requeue.v1.dead", "orders.former", "orders"),
        binding("requeue.v1.dead", "orders.dlq", "orders"),
        binding("requeue.v1.dead", "payments.dlq", "payments"),
        // A copy of somebody's own.
        binding("requeue.v1.dead", "audit", "orders"),
        binding("shop.events", "orders", "orders")
      ),
      ["requeue.v1.dead -> orders.former"]
    ))

  test("of somebody's exchange keeps the exchange that it leads from", () =>
    assert.deepStrictEqual(
      found({
        exchanges: [exchange("requeue.v1.q.delay.5000"), exchange("orders.retry")],
        bindings: [binding("requeue.v1.q.delay.5000", "theirs", "", false), binding("orders.retry", "theirs")]
      }),
      []
    ))
})
