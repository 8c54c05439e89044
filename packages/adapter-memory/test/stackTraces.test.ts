/** Where a failure is seen, its stack trace is as well, unless `stackTraces` turns that off. */
import { BatchPolicy, Consumer, type Event, Producer, Puller, RetryPolicy } from "@requeue/core"
import { Telemetry } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"

const noStock = (): never => {
  throw new TypeError("no stock")
}

/** The stacks that a consumer's failure leaves in each place. */
const seen = (
  options: Consumer.Options,
  fail: (message: { readonly fail: (error: unknown) => void }) => void = noStock
) =>
  Effect.gen(function* () {
    const logged: Array<unknown> = []
    const ended: Array<unknown> = []
    const events: Array<Event.Event> = []
    const logger = Logger.make(({ fiber, logLevel }) => {
      if (logLevel === "Warn") logged.push(fiber.getRef(References.CurrentLogAnnotations)["errorStack"])
    })
    const telemetry: Telemetry.Service = {
      send: (_, messages, publish) => publish(messages),
      consumer: () => ({
        onEvent: () => {},
        run: () => ({
          within: (handler) => handler(),
          end: (ending) => void (ending._tag === "Failed" && ended.push(ending.error.stack))
        }),
        settle: (_, settle) => settle,
        close: () => {}
      })
    }
    const program = Effect.gen(function* () {
      const { send } = yield* Producer.make("orders")
      yield* send(1)
      const onEvent = (event: Event.Event) => void events.push(event)
      const retry = RetryPolicy.make({ maxRetries: 0 })
      yield* Consumer.start("orders", { retry, onEvent, ...options }, (message) => fail(message))
      yield* TestClock.adjust("1 second")
      const { list } = yield* DeadLetters.make("orders.dlq")
      return (yield* list()).map(({ origin }) => origin?.error.stack)
    })
    const layer = Layer.mergeAll(
      MemoryBroker.layer(),
      Logger.layer([logger]),
      Layer.succeed(Telemetry.Telemetry, telemetry)
    )
    const letters = yield* program.pipe(Effect.scoped, Effect.provide(layer))
    const told = events.flatMap((event) =>
      event._tag === "AttemptFailed" || event._tag === "DeadLettered" ? [event.error.stack] : []
    )
    return { letters, logged, ended, told }
  })

const isTrace = (stack: unknown) => assert.match(String(stack), /^ {4}at noStock \(.*stackTraces\.test\.ts:\d+:\d+\)/)

describe("a stack trace", () => {
  it.effect("is in the log, in events, in telemetry and in the dead letter", () =>
    Effect.gen(function* () {
      const { ended, letters, logged, told } = yield* seen({})
      assert.deepStrictEqual([letters.length, logged.length, ended.length, told.length], [1, 2, 1, 2])
      for (const stack of [...letters, ...logged, ...ended, ...told]) isTrace(stack)
      assert.notInclude(String(letters[0]), "runHandler")
    })
  )

  it.effect("is in none of them with stackTraces: false", () =>
    Effect.gen(function* () {
      const { ended, letters, logged, told } = yield* seen({ stackTraces: false })
      assert.deepStrictEqual([letters.length, logged.length, ended.length, told.length], [1, 2, 1, 2])
      for (const stack of [...letters, ...logged, ...ended, ...told]) assert.isUndefined(stack)
    })
  )

  it.effect("is that of the error that a message was failed with", () =>
    Effect.gen(function* () {
      const { letters, told } = yield* seen({}, (message) => {
        try {
          noStock()
        } catch (error) {
          message.fail(error)
        }
      })
      for (const stack of [...letters, ...told]) isTrace(stack)
    })
  )

  it.effect("of a retry is read once for each log line, and for nothing else", () =>
    Effect.gen(function* () {
      let reads = 0
      const error = Object.defineProperty(new Error("no"), "stack", { get: () => `Error: no\n    at read ${++reads}` })
      const layer = Layer.merge(MemoryBroker.layer(), Logger.layer([]))
      yield* Effect.gen(function* () {
        const { send } = yield* Producer.make("orders")
        for (const body of [1, 2, 3]) yield* send(body)
        yield* Consumer.start("orders", { retry: RetryPolicy.make({ maxRetries: 1 }) }, ({ attempts }) => {
          if (attempts === 1) throw error
        })
        yield* TestClock.adjust("1 second")
      }).pipe(Effect.scoped, Effect.provide(layer))
      assert.strictEqual(reads, 2)
    })
  )

  it.effect("of a pulled batch can be turned off as well", () =>
    Effect.gen(function* () {
      for (const stackTraces of [true, false]) {
        const stacks = yield* Effect.gen(function* () {
          const { send } = yield* Producer.make("orders")
          yield* send(1)
          const retry = RetryPolicy.make({ maxRetries: 0 })
          const batch = BatchPolicy.make({ maxBatchSize: 1, maxBatchTimeout: 0 })
          const puller = yield* Puller.make("orders", { retry, batch, stackTraces })
          const pulled = yield* puller.pull()
          pulled!.fail(new TypeError("no stock"))
          yield* TestClock.adjust("1 second")
          const { list } = yield* DeadLetters.make("orders.dlq")
          return (yield* list()).map(({ origin }) => origin?.error.stack?.includes("stackTraces.test.ts"))
        }).pipe(Effect.scoped, Effect.provide(Layer.merge(MemoryBroker.layer(), Logger.layer([]))))
        assert.deepStrictEqual(stacks, [stackTraces ? true : undefined])
      }
    })
  )
})
