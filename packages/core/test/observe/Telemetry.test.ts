/** What telemetry is called for, and in which order. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import * as Producer from "../../src/produce/Producer.ts"
import * as Puller from "../../src/consume/Puller.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Telemetry from "../../src/observe/Telemetry.ts"
import * as Scripted from "../scripted.ts"

const start = () => {
  const log: Array<string> = []
  const telemetry: Telemetry.Service = {
    send: (broker, messages, publish) => {
      log.push(`send ${messages.length} to ${broker}`)
      return Effect.ensuring(
        publish(messages),
        Effect.sync(() => log.push("sent"))
      )
    },
    consumer: ({ broker, health, now, queue }) => {
      log.push(`consumer of ${queue} on ${broker} at ${now()}`)
      return {
        onEvent: (event) => void log.push(event._tag),
        run: (deliveries, rerun) => {
          log.push(`run ${deliveries.map(({ metadata }) => metadata.id).join(" ")}${rerun === 0 ? "" : " again"}`)
          return {
            within: (handler) => {
              log.push("within")
              return handler()
            },
            end: (ending) => {
              log.push(ending._tag === "Failed" ? `failed: ${ending.error.message}` : ending._tag)
            }
          }
        },
        settle: (requests, settle) => {
          log.push(`settle ${requests.map(({ settlement }) => settlement._tag).join(" ")}`)
          return Effect.ensuring(
            settle,
            Effect.sync(() => log.push("settled"))
          )
        },
        close: () => void log.push(`close: ${health().state}`)
      }
    }
  }
  const broker = Scripted.make()
  const layer = Layer.merge(broker.layer, Layer.succeed(Telemetry.Telemetry, telemetry))
  return { broker, layer, take: () => log.splice(0) }
}

describe("telemetry", () => {
  it.effect("is around a run, and around the settlement that follows from it", () => {
    const { broker, layer, take } = start()
    return Effect.gen(function* () {
      yield* TestClock.adjust(7)
      const own: Array<string> = []
      const consumer = yield* Consumer.start("q", { onEvent: ({ _tag }) => void own.push(_tag) }, () => {})
      assert.deepStrictEqual(take(), ["consumer of q on scripted at 7"])
      broker.deliver("a")
      yield* Effect.yieldNow
      const life = ["Received", "run a", "within", "Succeeded", "settle Ack", "settled", "Succeeded"]
      assert.deepStrictEqual(take(), life)
      assert.deepStrictEqual(own, ["Received", "Succeeded"])
      yield* consumer.drain()
      assert.deepStrictEqual(take(), ["close: stopped"])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("is told of every run, and of errors as they are redacted", () => {
    const { broker, layer, take } = start()
    const redact = ({ name }: { readonly name: string }) => ({ name, message: "***" })
    const retry = RetryPolicy.make({ maxRetries: 0, immediate: 1, deadLetter: { redact } })
    return Effect.gen(function* () {
      yield* Consumer.start("q", { retry, consumerBackoff: ConsumerBackoff.off }, () =>
        Effect.fail(new Error("secret"))
      )
      take()
      broker.deliver("a")
      yield* Effect.yieldNow
      const run = ["within", "failed: ***", "AttemptFailed"]
      const end = ["settle DeadLetter", "settled", "DeadLettered"]
      assert.deepStrictEqual(take(), ["Received", "run a", ...run, "run a again", ...run, ...end])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("is told of the end of a run that is interrupted", () => {
    const { broker, layer, take } = start()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", {}, () => Effect.never)
      broker.deliver("a")
      take()
      yield* consumer.drain(0)
      assert.deepStrictEqual(take(), ["Interrupted", "settle Release", "settled", "Released", "close: stopped"])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("sees a pulled batch as a run from its pull to its end", () => {
    const { broker, layer, take } = start()
    return Effect.gen(function* () {
      const puller = yield* Puller.make("q")
      const pulling = yield* Effect.forkChild(puller.pull(), { startImmediately: true })
      take()
      broker.deliver("a")
      yield* TestClock.adjust(1)
      const batch = yield* Fiber.join(pulling)
      assert.deepStrictEqual(take(), ["Received", "run a"])
      batch?.fail(new Error("no"))
      assert.deepStrictEqual(take().slice(0, 2), ["failed: no", "AttemptFailed"])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("is around a send, the wait for its confirmation included", () => {
    const { layer, take } = start()
    return Effect.gen(function* () {
      const producer = yield* Producer.make("q")
      yield* producer.sendBatch([{ body: 1 }, { body: 2 }])
      assert.deepStrictEqual(take(), ["send 2 to scripted", "sent"])
      yield* producer.sendBatch([])
      assert.deepStrictEqual(take(), [])
    }).pipe(Effect.provide(layer))
  })
})
