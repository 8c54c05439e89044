/** Acks in transactions: what the engine asks of the broker, and what it reports. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Consumer from "../../src/consume/Consumer.ts"
import { AlreadySettled } from "../../src/consume/Transaction.ts"
import type { Received } from "../../src/message/Handler.ts"
import type { Event } from "../../src/observe/Event.ts"
import * as Telemetry from "../../src/observe/Telemetry.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import * as DeadLetterBudget from "../../src/policy/DeadLetterBudget.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import type { Capabilities } from "../../src/port/Capabilities.ts"
import * as Scripted from "../scripted.ts"

const lost = { reason: "LeaseLost", fate: "lost" } as const

/** A consumer of one message at a time on a broker with transactions, its calls and its events. */
const starting = (capabilities: Partial<Capabilities> = {}) => {
  const broker = Scripted.make({ transactions: true, ...capabilities })
  const events: Array<Event> = []
  const start = (handler: (message: Received<unknown>) => Promise<unknown> | void, options: Consumer.Options = {}) =>
    Consumer.start("q", { prefetch: 0, ...options, onEvent: (event) => events.push(event) }, handler)
  const told = () => events.splice(0).flatMap(({ _tag }) => (_tag === "Received" ? [] : [_tag]))
  const calls = () => broker.take().filter((call) => !call.startsWith("credit"))
  return { broker, calls, events, start, told }
}

const tx = {}

describe("a message that is acked in a transaction", () => {
  it.effect("is never acked by the engine: a retry that is lost shows the commit, and is a success", () => {
    const { broker, calls, events, start } = starting()
    broker.faults.settle = () => lost
    const backoff = ConsumerBackoff.make({ form: "nsq" })
    return Effect.gen(function* () {
      const consumer = yield* start((message) => message.within(tx), { consumerBackoff: backoff })
      broker.deliver("a")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(calls(), ["within a", "a:Retry"])
      assert.deepStrictEqual(events.slice(1), [
        { _tag: "Succeeded", queue: "q", id: "a", attempts: 1, inTransaction: true }
      ])
      assert.deepInclude(consumer.health(), { state: "running", inProgress: 0 })
      assert.isDefined(consumer.health().lastSettled)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("has failed when its retry is taken, and only then", () => {
    const { broker, calls, events, start, told } = starting()
    broker.faults.latency = 10
    return Effect.gen(function* () {
      yield* start((message) => message.within(tx), { consumerBackoff: ConsumerBackoff.make({ form: "nsq" }) })
      broker.deliver("a")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([calls(), events.length], [["within a"], 1])
      yield* TestClock.adjust(10)
      assert.deepInclude(events[1], { _tag: "AttemptFailed", willRerun: false })
      assert.deepStrictEqual([calls(), told()], [["a:Retry"], ["AttemptFailed", "BackoffEntered", "RetryScheduled"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is settled when its handler ends, whatever it calls before", () => {
    const { broker, calls, start } = starting()
    broker.faults.settle = () => lost
    return Effect.gen(function* () {
      let gate = Promise.withResolvers<void>()
      yield* start(async (message) => {
        await message.within(tx)
        if (message.id === "a") message.ack()
        else message.retry({ delay: 5 })
        await gate.promise
      })
      for (const id of ["a", "b"]) {
        gate = Promise.withResolvers()
        broker.deliver(id)
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(calls(), [`within ${id}`])
        gate.resolve()
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(calls(), [`${id}:Retry`])
      }
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is settled as after a failure although the handler does not wait for the answer", () => {
    const { broker, calls, start } = starting()
    broker.faults.ackWithin = () => Effect.never
    return Effect.gen(function* () {
      yield* start((message) => void message.within(tx))
      broker.deliver("a")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(calls(), ["within a", "a:Retry"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("spends the budget of dead letters when it is dead-lettered, not when it may be", () => {
    const { broker, start, told } = starting()
    let fate: typeof lost | undefined = lost
    broker.faults.settle = () => fate
    const retry = RetryPolicy.make({ maxRetries: 0 })
    return Effect.gen(function* () {
      const options = { retry, concurrency: 3, deadLetterBudget: DeadLetterBudget.make({ max: 1, perSuccess: 0 }) }
      const consumer = yield* start((message) => message.within(tx), options)
      for (const id of ["a", "b", "c"]) broker.deliver(id)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([consumer.stats().state, told()], ["running", Array<string>(3).fill("Succeeded")])
      fate = undefined
      for (const id of ["d", "e"]) broker.deliver(id)
      yield* TestClock.adjust(1)
      assert.include((yield* Effect.flip(consumer.done)).message, "stopped")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is not committed when the adapter has refused its ack", () => {
    const { broker, start, told } = starting()
    broker.faults.settle = () => lost
    broker.faults.ackWithin = () => Effect.fail(broker.errorOf("within", "LeaseLost"))
    return Effect.gen(function* () {
      yield* start((message) => message.within(tx))
      broker.deliver("a")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(told(), ["SettleFailed", "AttemptFailed"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is not committed when the adapter refuses its ack after the run", () => {
    const { broker, calls, start, told } = starting()
    broker.faults.latency = 100
    broker.faults.settle = () => lost
    const refused = Effect.fail(broker.errorOf("within", "LeaseLost"))
    broker.faults.ackWithin = () => Effect.delay(refused, 50)
    return Effect.gen(function* () {
      yield* start((message) => void message.within(tx).catch(() => {}))
      broker.deliver("a")
      yield* TestClock.adjust(101)
      assert.notInclude(told(), "Succeeded")
      broker.faults.latency = 0
      broker.faults.settle = () => undefined
      broker.deliver("a", { attempts: 2 })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(calls(), ["within a", "a:Retry", "a:Retry"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("may be committed when the answer to its ack was lost", () => {
    const { broker, start, told } = starting()
    broker.faults.settle = () => lost
    broker.faults.ackWithin = () => Effect.fail(broker.errorOf("within", "Timeout"))
    return Effect.gen(function* () {
      yield* start((message) => message.within(tx))
      broker.deliver("a")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(told(), ["Succeeded"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("has no final event when its connection was lost before the answer", () => {
    const { broker, start, told } = starting()
    broker.faults.settle = () => lost
    const gate = Promise.withResolvers<void>()
    return Effect.gen(function* () {
      yield* start((message) => message.within(tx).then(() => gate.promise))
      broker.deliver("a")
      broker.reconnect()
      gate.resolve()
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(told(), ["SettleFailed", "AttemptFailed"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("loses no lease when the extension reports that it is gone", () => {
    const lease = { duration: 3000, max: Number.POSITIVE_INFINITY }
    const { broker, calls, start, told } = starting({ lease, connectionBound: false })
    broker.faults.settle = () => lost
    broker.faults.isOver = () => true
    const gate = Promise.withResolvers<void>()
    return Effect.gen(function* () {
      yield* start((message) => message.within(tx).then(() => gate.promise))
      broker.deliver("a")
      yield* TestClock.adjust(1500)
      assert.deepStrictEqual([calls(), told()], [["within a", "extend a"], []])
      gate.resolve()
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([calls(), told()], [["a:Retry"], ["Succeeded"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("is released when the drain interrupts its handler, and done if that is lost", () => {
    const { broker, calls, start, told } = starting()
    broker.faults.settle = () => lost
    return Effect.gen(function* () {
      const consumer = yield* start((message) => message.within(tx).then(() => new Promise(() => {})))
      broker.deliver("a")
      yield* Effect.yieldNow
      yield* consumer.drain(0)
      assert.deepStrictEqual([calls(), told()], [["within a", "a:Release"], ["Succeeded"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("has no telemetry of the settlement that only shows the commit", () => {
    const { broker, start } = starting({ settleBatch: 10, settleWait: 5 })
    const settled: Array<string> = []
    const telemetry: Telemetry.Service = {
      send: (_, messages, publish) => publish(messages),
      consumer: () => ({
        onEvent: () => {},
        run: () => Telemetry.unwatched,
        settle: (requests, settle) => {
          settled.push(...requests.map(({ delivery }) => delivery.metadata.id))
          return settle
        },
        close: () => {}
      })
    }
    return Effect.gen(function* () {
      yield* start((message) => (message.id === "a" ? message.within(tx) : undefined), { concurrency: 2 })
      for (const id of ["a", "b"]) broker.deliver(id)
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(settled, ["b"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer), Effect.provideService(Telemetry.Telemetry, telemetry))
  })

  it.effect("of an ordered group is followed by the later messages when it is committed", () => {
    const { broker, calls, start, told } = starting()
    broker.faults.settle = ({ settlement }) => (settlement._tag === "Retry" ? lost : undefined)
    return Effect.gen(function* () {
      yield* start((message) => (message.id === "a" ? message.within(tx) : undefined), { concurrency: 2 })
      for (const id of ["a", "b"]) broker.deliver(id, { group: "g" })
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(
        [calls(), told()],
        [
          ["within a", "a:Retry", "b:Ack"],
          ["Succeeded", "Succeeded"]
        ]
      )
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("within", () => {
  /** What the call throws, or rejects with. */
  const outcomeOf = (call: () => Promise<unknown>): readonly ["throws" | "promises", Promise<unknown>] => {
    try {
      return ["promises", call().catch((error: unknown) => error)]
    } catch (error) {
      return ["throws", Promise.resolve(error)]
    }
  }

  it.effect("throws at once what fails at once, as a synchronous transaction needs", () => {
    const { broker, start } = starting()
    const outcomes: Array<ReturnType<typeof outcomeOf>> = []
    const error = broker.errorOf("within", "LeaseLost")
    const answers: ReadonlyArray<Effect.Effect<ReadonlyArray<never>, typeof error>> = [
      Effect.succeed([]),
      Effect.fail(error),
      Effect.andThen(Effect.yieldNow, Effect.fail(error))
    ]
    broker.faults.ackWithin = (transaction) => answers[transaction as number]!
    return Effect.gen(function* () {
      yield* start((message) => {
        outcomes.push(outcomeOf(() => message.within(Number(message.id))))
      })
      for (const id of ["0", "1", "2"]) {
        broker.deliver(id)
        yield* TestClock.adjust(1)
      }
      assert.deepStrictEqual(
        outcomes.map(([how]) => how),
        ["promises", "throws", "promises"]
      )
      const results = yield* Effect.promise(() => Promise.all(outcomes.map(([, result]) => result)))
      assert.deepStrictEqual(results, [undefined, error, error])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("names the message, the queue and the reason when the message is settled", () => {
    const { broker, start } = starting()
    const messages: Array<Received<unknown>> = []
    return Effect.gen(function* () {
      yield* start((message) => {
        messages.push(message)
        message.ack()
        const error = assert.throws(() => void message.within(tx), AlreadySettled)
        return error
      })
      broker.deliver("a")
      yield* TestClock.adjust(1)
      assert.throws(
        () => void messages[0]!.within(tx),
        "message.within: queue q, message a: the run has ended. Await the transaction in the handler"
      )
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of a batch acks the messages that are not retried, and refuses one that is acked", () => {
    const { broker, calls } = starting()
    const errors: Array<unknown> = []
    broker.faults.settle = ({ settlement }) => (settlement._tag === "Retry" ? lost : undefined)
    return Effect.gen(function* () {
      yield* Consumer.startBatch("q", {}, (batch) => {
        const [a, b] = batch.messages
        if (a!.id === "a") b!.fail(new Error("no"))
        else a!.ack()
        try {
          void batch.within(tx)
          void batch.within(tx)
        } catch (error) {
          errors.push(error instanceof AlreadySettled && [error.call, error.id, error.by])
        }
      })
      for (const ids of [
        ["a", "b"],
        ["c", "d"]
      ]) {
        for (const id of ids) broker.deliver(id)
        yield* TestClock.adjust("10 seconds")
      }
      assert.deepStrictEqual(errors, [
        ["batch.within", "a", "enlisted"],
        ["batch.within", "c", "settled"]
      ])
      assert.deepStrictEqual(calls(), ["within a", "a:Retry b:Retry", "c:Ack d:Ack"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("fails on a broker without transactions, and leaves the message as it was", () => {
    const { broker, calls, start } = starting({ transactions: false })
    return Effect.gen(function* () {
      yield* start((message) => {
        assert.throws(() => void message.within(tx), "scripted: within on queue q: Unsupported: this broker has no")
      })
      broker.deliver("a")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(calls(), ["a:Ack"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})
