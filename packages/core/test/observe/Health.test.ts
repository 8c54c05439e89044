/** What a consumer says of itself in each of its states, and what probes make of it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { BrokerError } from "../../src/port/BrokerError.ts"
import type { Trouble } from "../../src/port/Trouble.ts"
import type { Counts } from "../../src/port/Broker.ts"
import type { Connection } from "../../src/port/Connection.ts"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import * as DeadLetterBudget from "../../src/policy/DeadLetterBudget.ts"
import * as Health from "../../src/observe/Health.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Scripted from "../scripted.ts"

const fail = () => Effect.fail(new Error("no"))

const fine: Health.QueueHealth = {
  queue: "q",
  state: "running",
  backoff: [],
  buffered: 0,
  inProgress: 0,
  quarantined: 0,
  trouble: undefined,
  lastDelivery: undefined,
  lastSettled: undefined,
  error: undefined,
  counts: undefined
}

const up: Connection = { state: "up", since: 1 }

describe("a consumer's health", () => {
  it.effect("tells when the last message came and was settled, and what is in its hands", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { drainTimeout: 0 }, () => Effect.sleep(100))
      const { counts: _, ...own } = fine
      assert.deepStrictEqual(consumer.health(), own)
      yield* TestClock.adjust(5000)
      broker.deliver("a")
      broker.deliver("b")
      const { buffered, inProgress } = consumer.health()
      assert.deepStrictEqual([buffered, inProgress], [1, 1])
      yield* TestClock.adjust(100)
      const { lastDelivery, lastSettled } = consumer.health()
      assert.deepStrictEqual([lastDelivery, lastSettled], [5000, 5100])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("tells the pause of its backoff, until when, and the probe after it", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { consumerBackoff: ConsumerBackoff.nsq() }, fail)
      yield* TestClock.adjust(1000)
      broker.deliver("a")
      const paused = { because: "handler", state: "paused", level: 1, until: 3000 }
      assert.deepStrictEqual([consumer.health().state, consumer.health().backoff], ["paused", [paused]])
      yield* TestClock.adjust(2000)
      const probing = { because: "handler", state: "probing", level: 1, until: undefined }
      assert.deepStrictEqual([consumer.health().state, consumer.health().backoff], ["probing", [probing]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("tells a broker that does not take settlements, apart from handlers that fail", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", {}, fail)
      broker.faults.settle = ({ settlement }) => (settlement._tag === "Retry" ? "Throttled" : undefined)
      broker.deliver("a")
      yield* Effect.yieldNow
      assert.deepStrictEqual(
        consumer.health().backoff.map(({ because, state }) => [because, state]),
        [["broker", "paused"]]
      )
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("tells that it drains, and that it has stopped", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", {}, () => Effect.never)
      broker.deliver("a")
      const draining = yield* Effect.forkChild(consumer.drain(1000), { startImmediately: true })
      assert.strictEqual(consumer.health().state, "draining")
      yield* TestClock.adjust(1000)
      yield* Fiber.join(draining)
      assert.deepStrictEqual([consumer.health().state, consumer.health().error], ["stopped", undefined])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is down while the broker does not give its messages, tells why, and is alive", () => {
    let trouble: Trouble | undefined
    const broker = Scripted.make({}, { trouble: () => trouble })
    const error = new BrokerError({ broker: "scripted", operation: "consume", reason: "QueueMissing", detail: "gone" })
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", {}, () => Effect.never)
      consumer.pause()
      trouble = { since: 7, error }
      const { state, trouble: told } = consumer.health()
      assert.deepStrictEqual([state, told], ["down", { since: 7, because: "scripted: consume: QueueMissing: gone" }])
      const health = yield* Health.check([consumer])
      assert.deepStrictEqual(
        [health.connection.state, Health.isReady(health), Health.isLive(health)],
        ["up", false, true]
      )
      trouble = undefined
      assert.deepStrictEqual([consumer.health().state, consumer.health().trouble], ["paused", undefined])
      trouble = { since: 7, error }
      yield* consumer.drain(0)
      assert.strictEqual(consumer.health().state, "stopped")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("tells why it has stopped itself, and is not alive any more", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const options = {
        retry: RetryPolicy.make({ maxRetries: 0 }),
        deadLetterBudget: DeadLetterBudget.make({ max: 1 })
      }
      const consumer = yield* Consumer.start("q", options, fail)
      broker.deliver("a")
      broker.deliver("b")
      yield* Effect.ignore(consumer.done)
      const { error, state } = consumer.health()
      assert.strictEqual(state, "stopped")
      assert.match(error ?? "", /deadLetterBudget/)
      assert.isFalse(Health.isLive(yield* Health.check([consumer])))
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("probes", () => {
  const paused: Health.Backoff = { because: "handler", state: "paused", level: 1, until: 1 }

  it.each([
    ["all is well", up, {}, true, true],
    ["the connection is lost", { state: "down", since: 2 }, {}, false, true],
    ["it probes", up, { state: "probing" }, true, true],
    ["it is paused", up, { state: "paused", backoff: [paused] }, true, true],
    ["it drains", up, { state: "draining" }, false, true],
    ["the broker does not give its messages", up, { state: "down" }, false, true],
    ["it is stalled", up, { state: "stalled" }, false, false],
    ["it was stopped", up, { state: "stopped" }, false, true],
    ["it has stopped itself", up, { state: "stopped", error: "why" }, false, false]
  ] as const)("when %s", (_, connection, change, ready, live) => {
    const health: Health.Health = { broker: "b", connection, consumers: [fine, { ...fine, ...change }] }
    assert.deepStrictEqual([Health.isReady(health), Health.isLive(health)], [ready, live])
    // As a probe's endpoint prints it.
    const printed = JSON.parse(JSON.stringify(health)) as Health.Health
    assert.deepStrictEqual([Health.isReady(printed), Health.isLive(printed)], [ready, live])
  })

  it.each([
    ["up", true],
    ["down", false]
  ] as const)("when the store is %s", (state, ready) => {
    const store = { broker: "s", connection: { state, since: 2 } }
    const health: Health.Health = { broker: "b", connection: up, store, consumers: [fine] }
    assert.deepStrictEqual([Health.isReady(health), Health.isLive(health)], [ready, true])
  })

  it("a consumer that one failed run has paused is degraded, and unready only where that is asked for", () => {
    const health: Health.Health = {
      broker: "b",
      connection: up,
      consumers: [fine, { ...fine, state: "paused", backoff: [paused] }]
    }
    const because = "handlers fail; the next attempt is at 1970-01-01T00:00:00.001Z"
    assert.deepStrictEqual(Health.degraded(health), [{ queue: "q", reason: "backoff", because }])
    assert.isTrue(Health.isReady(health))
    assert.isTrue(Health.isReady(health, { unreadyWhen: ["quarantine", "trouble", "paused"] }))
    assert.isFalse(Health.isReady(health, { unreadyWhen: ["backoff"] }))
  })

  it.each<readonly [string, Partial<Health.QueueHealth>, Array<[string, string]>]>([
    ["all is well", {}, []],
    [
      "it probes",
      { state: "probing", backoff: [{ because: "handler", state: "probing", level: 1, until: undefined }] },
      [["backoff", "handlers fail; one message is tried"]]
    ],
    [
      "it runs again and remembers",
      { backoff: [{ because: "broker", state: "running", level: 2, until: undefined }] },
      [
        [
          "backoff",
          "the broker does not take retries, dead letters or other settlements; the level of the backoff is 2"
        ]
      ]
    ],
    [
      "the program has paused it",
      { state: "paused", backoff: [{ because: "operator", state: "paused", level: 0, until: undefined }] },
      [["paused", "the program has paused the consumer"]]
    ],
    [
      "messages are in quarantine",
      { quarantined: 3 },
      [["quarantine", "the broker refuses every settlement of 3 messages"]]
    ],
    ["the queue is gone", { state: "down", trouble: { since: 1, because: "it is gone" } }, [["trouble", "it is gone"]]]
  ])("say why it is degraded when %s", (_, change, expected) => {
    const health: Health.Health = { broker: "b", connection: up, consumers: [{ ...fine, ...change }] }
    for (const each of [health, JSON.parse(JSON.stringify(health)) as Health.Health])
      assert.deepStrictEqual(
        Health.degraded(each).map(({ because, reason }) => [reason, because]),
        expected
      )
  })

  it.each([
    ["isLive", Health.isLive],
    ["isReady", Health.isReady],
    ["degraded", Health.degraded]
  ] as const)("%s names the promise of a health that was not awaited", (call, use) => {
    const health: Health.Health = { broker: "b", connection: up, consumers: [] }
    const error = `${call}: health must be the value of requeue.health() or Health.check, got `
    const promised = Promise.resolve(health) as unknown as Health.Health
    assert.throws(() => use(promised), RangeError, `${error}a promise. Write ${call}(await requeue.health())`)
    assert.throws(() => use(undefined as never), RangeError, `${error}undefined`)
  })

  it("refuse options that they do not know", () => {
    const health: Health.Health = { broker: "b", connection: up, consumers: [] }
    const refused = (options: object) => () => Health.isReady(health, options as Health.ReadyOptions)
    assert.throws(refused({ unready: [] }), RangeError, "isReady: unknown option unready. Allowed: unreadyWhen")
    assert.throws(refused({ unreadyWhen: ["backof"] }), RangeError, "isReady: unreadyWhen must be an array of")
  })

  const counts: Counts = { ready: 3, inFlight: 0, delayed: undefined }

  const asked = (connection: Connection, answer: Effect.Effect<Counts>) => {
    let calls = 0
    const broker = Scripted.make({}, { connection: () => connection, counts: Effect.suspend(() => (calls++, answer)) })
    const program = Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", {}, () => {})
      const checking = yield* Effect.forkChild(Health.check([consumer]), { startImmediately: true })
      yield* TestClock.adjust(1000)
      const { consumers } = yield* Fiber.join(checking)
      return [consumers[0]?.counts, calls] as const
    })
    return program.pipe(Effect.scoped, Effect.provide(broker.layer))
  }

  it.effect("tell what waits in the queue", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* asked(up, Effect.succeed(counts)), [counts, 1])
    })
  )

  it.effect("answer within a second though the broker does not", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* asked(up, Effect.never), [undefined, 1])
    })
  )

  it.effect("do not ask a broker that is not reached", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* asked({ state: "down", since: 1 }, Effect.succeed(counts)), [undefined, 0])
    })
  )
})
