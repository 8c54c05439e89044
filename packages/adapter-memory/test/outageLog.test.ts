/** The log of outages: each is in it from its first failure to its last, and it stays short. */
import { assert, it } from "@effect/vitest"
import { Backoff, Consumer, Producer, RetryPolicy } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import { MemoryBroker } from "../src/index.ts"

const minute = 60_000

/** Two outages of 1,000 and 700 failures with the same name of error, an hour apart, and a bug in the second. */
const errorAt = (time: number, body: number): Error | undefined => {
  if (time < 10 * minute) return new Error(`connect ECONNREFUSED 10.0.0.${body % 7}:5432`)
  if (time < 60 * minute || time >= 65 * minute) return undefined
  return new Error(body % 10 === 0 ? `no price for order ${body}` : `HTTP 503 after ${body} ms`)
}

it.effect("tells of each, with the number of its failures, and of nothing between them", () => {
  const lines: Array<Readonly<Record<string, unknown>>> = []
  const logger = Logger.make<unknown, void>(({ date, fiber, message }) => {
    if (!String(message).startsWith("a handler failed")) return
    lines.push({ ...fiber.getRef(References.CurrentLogAnnotations), minute: Math.floor(date.getTime() / minute) })
  })
  let failures = 0
  return Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const producer = yield* Producer.make("orders")
    const retry = RetryPolicy.make({ maxRetries: 100, backoff: Backoff.constant("30 seconds") })
    yield* Consumer.start<number>("orders", { retry }, ({ body }) => {
      const error = errorAt(clock.currentTimeMillisUnsafe(), body)
      if (error === undefined) return
      failures++
      throw error
    })
    for (const [start, messages] of [
      [0, 50],
      [60, 70]
    ] as const) {
      yield* TestClock.setTime(start * minute)
      for (let body = 1; body <= messages; body++) yield* producer.send(body)
      for (let second = 0; second < 20 * 60; second++) yield* TestClock.adjust("1 second")
    }
    assert.strictEqual(failures, 1700)

    const of = (pattern: string) => lines.filter((line) => line["pattern"] === pattern)
    const minutesOf = (pattern: string) => of(pattern).map((line) => line["minute"])
    const countOf = (pattern: string) => of(pattern).reduce((sum, line) => sum + Number(line["count"]), 0)
    const [refused, unavailable, bug] = [
      "connect ECONNREFUSED <addr>",
      "HTTP 503 after <duration>",
      "no price for order <num>"
    ]
    assert.deepStrictEqual(minutesOf(refused), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    assert.deepStrictEqual(minutesOf(unavailable), [60, 61, 62, 63, 64, 65])
    assert.deepStrictEqual(minutesOf(bug), minutesOf(unavailable))
    assert.deepStrictEqual([refused, unavailable, bug].map(countOf), [1000, 630, 70])
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(MemoryBroker.layer(), Logger.layer([logger]))))
})
