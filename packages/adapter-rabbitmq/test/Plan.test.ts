import { assert, describe, it } from "@effect/vitest"
import { Backoff, ConfigurationError, RetryPolicy } from "@requeue/core"
import * as fc from "fast-check"
import * as Result from "effect/Result"
import * as Levels from "../src/internal/declare/topologies/levels.ts"
import * as Objects from "../src/internal/declare/objects.ts"
import * as Quantisation from "../src/internal/declare/topologies/quantisation.ts"
import * as Ranges from "../src/internal/declare/topologies/ranges.ts"
import * as WaitLoop from "../src/internal/declare/topologies/waitLoop.ts"
import { RabbitMqNative, RabbitMqOptions, RabbitMqPlan } from "../src/index.ts"

const settings = (options: RabbitMqOptions.Options = {}) => Result.getOrThrow(RabbitMqOptions.decode(options))

const plan = (
  options: RabbitMqOptions.Options,
  backoff: Backoff.Backoff | "none" | undefined = Backoff.constant(1000),
  version = "4.3.6"
): RabbitMqPlan.Plan => {
  const retry = RetryPolicy.make(backoff === "none" ? {} : { backoff })
  const request = { queue: "orders", retry, deadLetterQueues: ["orders.dlq"] }
  const made = RabbitMqPlan.make(request, settings(options), version)
  if (made instanceof ConfigurationError.ConfigurationError) throw made
  return made
}

const refusal = (options: RabbitMqOptions.Options, backoff: Backoff.Backoff | undefined, version = "4.3.6") => {
  const made = RabbitMqPlan.make({ queue: "q", retry: RetryPolicy.make({ backoff }) }, settings(options), version)
  assert.instanceOf(made, ConfigurationError.ConfigurationError)
  return made
}

const queues = ({ objects }: RabbitMqPlan.Plan) =>
  objects.flatMap((object) => (object._tag === "Queue" ? [object.name] : []))

const argumentsOf = ({ objects }: RabbitMqPlan.Plan, name: string) =>
  objects.flatMap((object) => (object._tag === "Queue" && object.name === name ? [object.arguments] : []))[0]

describe("a name with a line break", () => {
  it.each([{ queue: "orders\n" }, { queue: "orders", deadLetterQueues: ["dead\r"] }])("has no plan: %o", (request) => {
    const refused = RabbitMqPlan.make(request, Result.getOrThrow(RabbitMqOptions.decode()), "4.3.6")
    assert.instanceOf(refused, Error)
    assert.match(String(refused), /has a line break, which RabbitMQ drops/)
  })

  it("is no exchange or routing key of a message", () => {
    for (const native of [{ exchange: "e\n" }, { exchange: "e", routingKey: "k\n" }])
      assert.throws(() => RabbitMqNative.make(native), /without a line break/)
  })
})

describe("a name with a broken surrogate", () => {
  it("has no plan, is no option, and no exchange or routing key of a message", () => {
    const own = settings()
    for (const request of [{ queue: "lo\ud800op" }, { queue: "orders", deadLetterQueues: ["lo\ud801op"] }])
      assert.match(String(RabbitMqPlan.make(request, own, "4.3.6")), /has a broken surrogate/)
    for (const options of [{ exchanges: { "e\ud800": { type: "topic" } } }, { queues: { "q\ud800": {} } }])
      assert.throws(() => settings(options), /has a broken surrogate/)
    for (const native of [{ exchange: "e\ud800" }, { exchange: "e", routingKey: "k\ud800" }])
      assert.throws(() => RabbitMqNative.make(native), /without a line break or a broken surrogate/)
  })
})

describe("a name of Object.prototype", () => {
  const names = ["constructor", "toString", "valueOf", "hasOwnProperty", "__proto__"]

  it.each(names)("%s is a queue, a dead-letter queue and an exchange like any other", (name) => {
    const own = settings()
    const argumentsLike = JSON.stringify(RabbitMqPlan.queue("plain", own)).replaceAll("plain", name)
    assert.strictEqual(JSON.stringify(RabbitMqPlan.queue(name, own)), argumentsLike)
    const made = RabbitMqPlan.make({ queue: name, deadLetterQueues: [`${name}.dlq`, "valueOf"] }, own, "4.3.6")
    assert.notInstanceOf(made, Error)
    assert.deepStrictEqual(RabbitMqPlan.target(name, own, "4.3.6"), [Objects.exchange(name, "", undefined, "passive")])
  })

  it.each(names)("%s can have options", (name) => {
    const own = settings(
      JSON.parse(`{"queues":{"${name}":{"type":"classic"}},"exchanges":{"${name}":{"type":"topic"}}}`)
    )
    assert.strictEqual(RabbitMqOptions.typeOf(name, own), "classic")
    assert.include(RabbitMqPlan.target(name, own, "4.3.6")[0], { name, type: "topic" })
  })
})

describe("a name that the server keeps for answers", () => {
  it.each(["amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to.abc"])("has no plan: %s", (queue) => {
    const refused = RabbitMqPlan.make({ queue }, Result.getOrThrow(RabbitMqOptions.decode()), "4.3.6")
    assert.match(String(refused), /keeps names that begin with amq\.rabbitmq\.reply-to for answers/)
  })

  it("is the routing key of an answer", () => {
    RabbitMqNative.make({ exchange: "", routingKey: "amq.rabbitmq.reply-to.abc" })
  })
})

describe("what all queues have in common", () => {
  const planOf = (queue: string, own: RabbitMqOptions.Settings) => {
    const made = RabbitMqPlan.make({ queue }, own, "4.3.6")
    if (made instanceof ConfigurationError.ConfigurationError) throw made
    return made
  }

  it("is the same objects for queues of the same settings, however long a delay is", () => {
    const own = settings()
    const [one, other] = [planOf("one", own), planOf("other", own)]
    for (const [mine, theirs] of [
      [one.objects, other.objects],
      [one.onDemand, other.onDemand],
      [one.route(86_400_000).objects, other.route(86_400_000).objects]
    ] as const) {
      const known = new Set(theirs)
      const apart = mine.filter((object) => !known.has(object))
      assert.isAbove(mine.length, 3)
      for (const object of apart) assert.include(JSON.stringify(object), `"one"`)
    }
  })

  it("is made of the settings of each connection, and not of those of another", () => {
    const all = [
      { prefix: "a" },
      { prefix: "b" },
      { prefix: "a", resolution: 10 },
      { prefix: "a", queueType: "classic" }
    ]
    const shown = () =>
      all.map((options) => {
        const { objects, onDemand } = planOf("orders", settings(options as RabbitMqOptions.Options))
        return JSON.stringify([objects, onDemand])
      })
    assert.strictEqual(new Set(shown()).size, all.length)
    assert.deepStrictEqual(shown(), shown())
    assert.notInclude(shown()[1], '"a.v1.')
  })
})

describe("the work queue", () => {
  it("is a quorum queue with a limit, and at-least-once dead-lettering behind it", () =>
    assert.deepStrictEqual(argumentsOf(plan({}), "orders"), {
      "x-queue-type": "quorum",
      "x-delivery-limit": 1000,
      "x-dead-letter-exchange": "requeue.v1.dead",
      "x-dead-letter-routing-key": "orders",
      "x-dead-letter-strategy": "at-least-once",
      "x-overflow": "reject-publish"
    }))

  it("is the same for every policy, so that a new policy never meets PRECONDITION_FAILED", () => {
    const policies = [
      "none" as const,
      Backoff.constant(5),
      Backoff.exponential(10),
      Backoff.linear(7, { jitter: "full" })
    ]
    const all = policies.map((backoff) => argumentsOf(plan({}, backoff), "orders"))
    for (const each of all) assert.deepStrictEqual(each, all[0])
  })

  it.each<[string, RabbitMqOptions.Options, number | undefined]>([
    ["the option's", { deliveryLimit: 50 }, 50],
    ["its own", { queues: { orders: { arguments: { "x-delivery-limit": 30 } } } }, 30],
    ["none", { queues: { orders: { arguments: { "x-delivery-limit": -1 } } } }, Number.POSITIVE_INFINITY],
    ["unknown, where somebody else declares it", { queues: { orders: { assert: "never" } } }, undefined],
    [
      "known, where somebody else declares it with one",
      {
        assert: "passive",
        queues: { orders: { arguments: { "x-delivery-limit": 200 } } }
      },
      200
    ]
  ])("has a delivery limit: %s", (_, options, limit) => assert.strictEqual(plan(options).found.deliveryLimit, limit))

  it("needs a delivery limit that leaves room for the policy", () => {
    const limited = (limit: number) => ({ queues: { q: { arguments: { "x-delivery-limit": limit } } } })
    const error = refusal(limited(3), undefined)
    assert.match(error.message, /queues\.q\.arguments\.x-delivery-limit.*after 4 deliveries.*allows 14.*limit of 4/)
    for (const [limit, maxDeliveries] of [
      [4, "unlimited"],
      [3, 3],
      [3, 1]
    ] as const) {
      const retry = RetryPolicy.make({ maxAttempts: 1, maxDeliveries })
      assert.notInstanceOf(RabbitMqPlan.make({ queue: "q", retry }, settings(limited(limit)), "4.3.6"), Error)
    }
    assert.notInstanceOf(RabbitMqPlan.make({ queue: "q" }, settings(limited(0)), "4.3.6"), Error)
  })

  it("may be classic, have arguments of its own and be fed by other exchanges", () => {
    const made = plan({
      queueType: "classic",
      queues: { orders: { arguments: { "x-max-priority": 5 }, bindings: [{ exchange: "shop", routingKey: "#.paid" }] } }
    })
    assert.deepStrictEqual(argumentsOf(made, "orders"), {
      "x-queue-type": "classic",
      "x-dead-letter-exchange": "requeue.v1.dead",
      "x-dead-letter-routing-key": "orders",
      "x-max-priority": 5
    })
    assert.include(RabbitMqPlan.format(made), "shop -> orders")
  })

  it("is left alone when it is somebody else's", () => {
    const made = plan({ assert: "never" })
    assert.deepStrictEqual(
      made.objects.flatMap((object) => (object._tag === "Queue" && object.name === "orders" ? [object.assert] : [])),
      ["never"]
    )
  })
})

describe("the choice", () => {
  it.each([
    ["a few known delays", Backoff.sequence([1000, 5000]), "ladder"],
    ["jitter that a few rungs cover", Backoff.constant(1000, { jitter: { proportional: 0.1 } }), "ladder"],
    ["jitter from nothing to a day", Backoff.exponential(1000, { jitter: "full" }), "levels"],
    ["no backoff", "none", "levels"],
    ["no delay", Backoff.constant(0), "levels"]
  ] as const)("%s", (_, backoff, topology) => assert.strictEqual(plan({}, backoff).topology, topology))

  it.each([
    ["8 known delays", 8, "ladder"],
    ["9 known delays", 9, "levels"]
  ] as const)("of a queue that is not ours: %s", (_, count, topology) => {
    const delays = Array.from({ length: count }, (_, index) => 1000 * (index + 1))
    const retry = RetryPolicy.make({ maxRetries: count, backoff: Backoff.sequence(delays) })
    const made = RabbitMqPlan.make({ queue: "q", retry }, settings({ queues: { q: { assert: "passive" } } }), "4.3.6")
    assert.strictEqual("topology" in made && made.topology, topology)
  })

  it("refuses native delays on older servers, and for what queues cannot do", () => {
    assert.strictEqual(refusal({ topology: "native" }, Backoff.linear(500), "4.2.9").field, "topology")
    assert.strictEqual(refusal({ topology: "native" }, Backoff.exponential(500)).field, "retry.backoff")
    assert.strictEqual(refusal({ topology: "native" }, Backoff.linear(500, { jitter: "full" })).field, "retry.backoff")
  })

  it("needs no native delays for a policy without delays", () => {
    const none = plan({ topology: "native" }, "none")
    assert.isUndefined(none.native)
    assert.deepStrictEqual(argumentsOf(none, "orders"), argumentsOf(plan({}), "orders"))
  })

  it.each(["3.9.29", "0.0", "nonsense"])("refuses server %s", (version) =>
    assert.match(refusal({}, undefined, version).message, /3\.10/)
  )
})

describe("a queue that is not ours", () => {
  const theirs = { queues: { orders: { assert: "passive" }, "orders.dlq": { assert: "passive" } } } as const

  it("has rungs of its own, from which one hop leads straight back to it, and which the consumer declares", () => {
    const made = plan(theirs)
    const rung = "requeue.v1.q.delay.1000.home.orders"
    const { exchange, kept, objects, routingKey } = made.route(1000)
    assert.deepStrictEqual({ exchange, kept, routingKey }, { exchange: rung, kept: 1000, routingKey: "orders" })
    // The default exchange goes by the routing key, which is still the queue's name.
    assert.deepStrictEqual(argumentsOf(made, rung), {
      "x-queue-type": "quorum",
      "x-dead-letter-strategy": "at-least-once",
      "x-overflow": "reject-publish",
      "x-message-ttl": 1000,
      "x-dead-letter-exchange": ""
    })
    const declared = made.objects.map((object) => JSON.stringify(object))
    for (const object of objects) assert.include(declared, JSON.stringify(object))
    assert.isFalse(objects.some((object) => object._tag === "Binding" && object.queue === "orders"))
  })

  it("shares no rung with another one, however long their names are", () => {
    const names = ["a", "b"].map((end) => `${"q".repeat(254)}${end}`)
    const exchanges = names.map((queue) => {
      const own = settings({ queues: { [queue]: { assert: "passive" } } })
      const made = RabbitMqPlan.make(
        { queue, retry: RetryPolicy.make({ backoff: Backoff.constant(1000) }) },
        own,
        "4.3.6"
      )
      return "route" in made ? made.route(1000).exchange : ""
    })
    assert.strictEqual(new Set(exchanges).size, 2)
    for (const name of exchanges) assert.isAtMost(Buffer.byteLength(name), 255)
  })

  it("has other delays from the levels, which lead straight back to it as well", () => {
    const { objects } = plan(theirs).route(70)
    assert.isTrue(objects.some((object) => object._tag === "Queue" && object.name.endsWith(".home.orders")))
    assert.isFalse(objects.some((object) => object._tag === "Binding" && object.queue === "orders"))
  })

  it("gets no delayed message by a binding of its own, which others may have made", () => {
    for (const delay of [1, 50, 70, 1000, 86_400_000]) {
      const route = plan({ ...theirs, topology: "levels" }).route(delay)
      const bound = { ...route, objects: [...route.objects, Objects.binding("requeue.v1.deliver", "orders", "orders")] }
      assert.deepStrictEqual(way(bound), { to: "orders", waits: route.kept })
    }
  })
})

/** The queue that a route ends in by the rules of the server, with the sum of its waits; it must never fork. */
const way = ({ exchange: first, headers, objects, routingKey }: ReturnType<RabbitMqPlan.Plan["route"]>) => {
  let waits = 0
  for (let exchange = first; exchange !== ""; ) {
    const matching = objects.filter(
      (object) =>
        object._tag === "Binding" &&
        object.source === exchange &&
        (object.arguments["x-match"] === undefined
          ? object.key === routingKey
          : Object.entries(object.arguments).every(([name, value]) => name === "x-match" || headers[name] === value))
    )
    assert.isAtMost(matching.length, 1, exchange)
    const queue = matching.flatMap((object) => (object._tag === "Binding" ? [object.queue] : []))[0]
    if (queue === routingKey) return { to: queue, waits }
    const [kind, name] = queue === undefined ? (["Exchange", exchange] as const) : (["Queue", queue] as const)
    const found = objects.flatMap((object) => (object._tag === kind && object.name === name ? [object.arguments] : []))
    assert.lengthOf(found, 1, name)
    waits += Number(found[0]!["x-message-ttl"] ?? 0)
    exchange = String(found[0]![kind === "Queue" ? "x-dead-letter-exchange" : "alternate-exchange"])
  }
  return { to: routingKey, waits }
}

describe("a route", () => {
  const options: ReadonlyArray<RabbitMqOptions.Options> = [
    { topology: "ladder" },
    { topology: "levels" },
    { topology: "levels", resolution: 1000 },
    { topology: "perMessageTtl" },
    { topology: "perMessageTtlShared" },
    { topology: "perDelayQueue" }
  ]

  it("is never shorter than asked, whatever is asked", () => {
    for (const each of options) {
      const { route } = plan(each, Backoff.sequence([100, 1000, 30_000]))
      fc.assert(
        fc.property(fc.integer({ min: 1, max: 86_400_000 }), (delay) => {
          const { kept, objects } = route(delay)
          return kept >= delay && kept <= delay + 1000 && objects.length > 0
        })
      )
    }
  })

  it("through the levels waits in the queues of the digits that are set", () => {
    const { exchange, headers, routingKey } = Levels.router("a.#.b", settings())(50 * 0b1011)
    assert.strictEqual(exchange, "requeue.v1.q.level.50.3")
    assert.strictEqual(routingKey, "a.#.b")
    assert.deepStrictEqual(headers, { "requeue-level-0": "1", "requeue-level-1": "1", "requeue-level-3": "1" })
  })

  it.each([true, false])("through the levels is late by less than one resolution; the queue is ours: %s", (isOurs) =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 86_400_000 }), (delay) => {
        const route = Levels.router("orders", settings(), isOurs)(delay)
        assert.deepStrictEqual(way(route), { to: "orders", waits: route.kept })
        assert.isAtLeast(route.kept, delay)
        assert.isBelow(route.kept, delay + 50)
      })
    )
  )

  it("through the ladder takes the policy's rungs, and the levels for other delays", () => {
    const { route } = plan({}, Backoff.sequence([1000, 5000]))
    assert.strictEqual(route(1000).exchange, "requeue.v1.q.delay.1000")
    assert.strictEqual(route(5000).kept, 5000)
    assert.strictEqual(route(1010).exchange, "requeue.v1.q.level.50.4")
  })

  it("has the names of foreign topologies", () => {
    const names = { retryExchange: "{queue}-retry-x", workExchange: "work-x", retryQueue: "{queue}-retry" }
    assert.strictEqual(plan({ topology: "perMessageTtl", names }).route(5).exchange, "orders-retry-x")
    assert.strictEqual(plan({ topology: "perDelayQueue" }).route(4001).routingKey, "orders_dlq_5")
    const named = { topology: "perDelayQueue", names: { delayQueue: "wait.{ms}.{queue}" } } as const
    assert.strictEqual(plan(named).route(4001).routingKey, "wait.5000.orders")
  })
})

describe("rungs", () => {
  it("are the policy's own delays, each once", () =>
    assert.deepStrictEqual(
      Quantisation.fewRungs(
        Ranges.ofPolicy(RetryPolicy.make({ maxRetries: 6, backoff: Backoff.exponential(100, { max: 800 }) })),
        4
      ),
      [100, 200, 400, 800]
    ))

  it("of spread delays are at most a twentieth apart", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 86_400_000 }), (delay) => {
        const rung = Quantisation.round(delay)
        return rung >= delay && rung <= Math.ceil(delay * 1.0501) && Quantisation.round(rung) === rung
      })
    ))
})

describe("a round of the waiting queue", () => {
  it.each([
    [[1000, 1500, 4000], 500],
    [[0, 7000], 7000],
    [[], 1000],
    [[110, 200], 50]
  ] as const)("of %j is %d ms", (delays, expected) => assert.strictEqual(WaitLoop.round(delays, 50), expected))
})

// The server's own limit, 20 from 4.0 on, would drop what has been browsed, or given back, that often.
it("leaves no queue to the server's default delivery limit, unless its dead letters are kept", () => {
  for (const topology of ["ladder", "levels", "perMessageTtl", "perDelayQueue", "waitLoop"] as const) {
    for (const object of plan({ topology }).objects) {
      if (object._tag !== "Queue" || "x-dead-letter-exchange" in object.arguments) continue
      assert.isAtLeast(Number(object.arguments["x-delivery-limit"]), 1_000_000, `${object.name} of ${topology}`)
    }
  }
})

describe("the table", () => {
  it.each(["perMessageTtl", "perMessageTtlShared"] as const)(
    "prints what is declared, and what should be known: %s",
    (topology) => {
      const text = RabbitMqPlan.format(plan({ topology }))
      assert.match(text, new RegExp(`^queue orders, topology ${topology}: \\d queues, \\d exchanges, \\d bindings\n`))
      assert.include(text, "note: head-of-line blocking")
      assert.match(text, /queue +orders\.dlq +x-queue-type=quorum/)
    }
  )

  it("names the queues of a ladder", () =>
    assert.includeMembers(queues(plan({}, Backoff.sequence([1000, 5000]))) as Array<string>, [
      "orders",
      "orders.dlq",
      "requeue.v1.q.delay.1000",
      "requeue.v1.q.delay.5000",
      "requeue.v1.q.undelivered"
    ]))
})
