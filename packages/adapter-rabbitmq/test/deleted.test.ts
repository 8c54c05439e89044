/** Objects that are deleted under a running consumer while the server reports no error. */
import { assert, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Result from "effect/Result"
import { TestClock } from "effect/testing"
import { EventEmitter } from "node:events"
import type { Connection, Live } from "../src/internal/connect/connection.ts"
import * as Sessions from "../src/internal/consume/sessions.ts"
import * as Declarer from "../src/internal/declare/declare.ts"
import * as Plan from "../src/RabbitMqPlan.ts"
import * as RabbitMqOptions from "../src/RabbitMqOptions.ts"

const exchange = "requeue.v1.deliver"

const turn = Effect.promise(() => new Promise(setImmediate))

const settings = Result.getOrThrow(RabbitMqOptions.decode())

/** A server of exchanges and queues, whose user may lose the right to declare. */
const server = () => {
  const there = new Set<string>()
  let mayDeclare = true
  const missing = (name: string) => new Error(`Operation failed: 404 (NOT-FOUND) with message "NOT_FOUND - no ${name}"`)
  const make = async (name: string) => {
    if (!mayDeclare && !there.has(name))
      throw new Error(
        `Operation failed: 403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - access to ${name} refused"`
      )
    there.add(name)
  }
  const check = async (name: string) => {
    if (!there.has(name)) throw missing(name)
  }
  const channel = async () =>
    Object.assign(new EventEmitter(), {
      assertExchange: make,
      assertQueue: make,
      checkExchange: check,
      checkQueue: check,
      bindQueue: (_: string, source: string) => check(source),
      prefetch: async () => {},
      consume: async () => {},
      cancel: async () => {},
      close: async () => {}
    })
  const live = {
    driver: { version: "4.3.6", channel, consumerChannel: channel, heard: () => 0 },
    isGone: () => false,
    blockedBy: () => undefined
  } as unknown as Live
  const connection = {
    current: () => live,
    live: Effect.succeed(live),
    within: () => Effect.succeed(live)
  } as unknown as Connection
  return { connection, there, permit: (may: boolean) => (mayDeclare = may) }
}

it.effect("a deleted exchange is declared again and logged, or is the trouble of the consumer", () =>
  Effect.gen(function* () {
    const { connection, permit, there } = server()
    const lines: Array<string> = []
    const logger = Logger.make(({ fiber, message }) => {
      const { objects } = fiber.getRef(References.CurrentLogAnnotations)
      lines.push(`${String(message)}: ${String(objects)}`)
    })
    const plan = Plan.make({ queue: "orders" }, settings, "4.3.6")
    if (plan instanceof Error) throw plan
    const declarer = yield* Declarer.make(connection, settings)
    const sessions = Sessions.make(
      {
        first: plan,
        again: Effect.succeed(plan),
        look: Effect.void,
        keepsNotBefore: false,
        onDelivery: () => {},
        onReconnect: () => {}
      },
      {
        settings,
        connection,
        declarer,
        uniqueName: () => "c",
        early: new Set(),
        now: () => 0,
        fork: (run) => void Effect.runFork(run)
      }
    )
    const watched = Effect.gen(function* () {
      const { trouble } = yield* sessions
      /** The next look, with all its answers: none of the server's takes longer than a turn of the event loop. */
      const look = Effect.andThen(
        TestClock.adjust("36 seconds"),
        Effect.forEach(Array.from({ length: 50 }), () => turn)
      )
      yield* look
      assert.deepStrictEqual([trouble?.(), lines], [undefined, []])

      there.delete(exchange)
      yield* look
      assert.isTrue(there.has(exchange))
      assert.isUndefined(trouble?.())
      assert.deepStrictEqual(lines, [`declared deleted objects again: exchange ${exchange}`])

      permit(false)
      there.delete(exchange)
      yield* look
      assert.instanceOf(trouble?.()?.error, BrokerError.BrokerError)
      assert.include(trouble?.()?.error.message, exchange)
      assert.strictEqual(lines.pop(), "deleted objects of the queue could not be declared again: undefined")

      permit(true)
      yield* look
      assert.isTrue(there.has(exchange))
      assert.isUndefined(trouble?.())
    })
    yield* Effect.scoped(watched).pipe(Effect.provide(Logger.layer([logger])))
  })
)
