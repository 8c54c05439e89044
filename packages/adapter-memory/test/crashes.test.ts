/** Deliveries that come to no end: connections that break again and again, and handlers that kill their process. */
import { Workload } from "@requeue/conformance"
import { BatchPolicy, Broker, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import type { Options } from "../src/index.ts"
import { queue, run, runsOf, until } from "./faultyBroker.ts"

describe("connections that break every 2 seconds for 10 seconds", () => {
  test.each([
    ["defaults", RetryPolicy.make()],
    ["one attempt", RetryPolicy.make({ maxRetries: 0 })]
  ])("make no dead letter of messages that wait for their batch: %s", (_, retry) =>
    run(Workload.ids(8), (world) =>
      Effect.gen(function* () {
        yield* world.startBatch(queue, { retry }, () => {})
        for (let count = 0; count < 5; count++) {
          yield* Effect.sleep("2 seconds")
          yield* world.control.cut
        }
        yield* world.untilEnded()
        assert.strictEqual(world.books.acked.size, 8)
        assert.lengthOf(world.books.runs, 8)
        yield* world.balance
      })
    )
  )

  test("make no dead letter of messages whose handler runs, and run none twice", () =>
    run(Workload.ids(20), (world) =>
      Effect.gen(function* () {
        const retry = RetryPolicy.make({ maxRetries: 0 })
        yield* world.start(queue, { retry, concurrency: 3 }, () => Effect.sleep("3 seconds"))
        for (let count = 0; count < 5; count++) {
          yield* Effect.sleep("2 seconds")
          yield* world.control.cut
        }
        yield* world.untilEnded()
        assert.strictEqual(world.books.acked.size, 20)
        assert.lengthOf(world.books.runs, 20)
        yield* world.balance
      })
    ))
})

/**
 * A broker whose subscriptions can be killed: their deliveries are lost, and nobody hears of them any more. Deliveries
 * take `latency` milliseconds; with 0 they do not.
 */
const mortal = (latency: number) => {
  let kill: Effect.Effect<void> = Effect.void
  const wrap = (broker: Broker.Service): Broker.Service => ({
    ...broker,
    subscribe: (options) =>
      Effect.gen(function* () {
        let isDead = false
        const scope = yield* Scope.make()
        const fork = Effect.runForkWith(yield* Effect.context())
        const { onDelivery } = options
        const late: typeof onDelivery = (delivery) => {
          const arrival = Effect.sync(() => isDead || onDelivery(delivery))
          fork(Effect.delay(arrival, latency))
        }
        const subscribed = broker.subscribe({ ...options, onDelivery: latency === 0 ? onDelivery : late })
        const subscription = yield* Scope.provide(subscribed, scope)
        kill = Effect.suspend(() => {
          isDead = true
          return Scope.close(scope, Exit.void)
        })
        return {
          ...subscription,
          settle: (requests) => (isDead ? Effect.never : subscription.settle(requests))
        }
      })
  })
  return { wrap, kill: Effect.suspend(() => kill) }
}

describe("a handler that kills its process", () => {
  const retry = RetryPolicy.make()
  const ids = Workload.ids(10)

  interface Life {
    /** Milliseconds that a delivery takes. */
    readonly latency: number
    /** Milliseconds that a handler takes. */
    readonly after: number
    readonly options?: Options.Options
  }

  /**
   * Starts consumers until every message has ended; each of them ends with its process. Answers their number, and the
   * neighbours that are dead letters.
   */
  const live = (seed: number, { after, latency, options = {} }: Life) => {
    const culprit = ids[seed % ids.length]!
    const { kill, wrap } = mortal(latency)
    return run(
      ids,
      (world) =>
        Effect.gen(function* () {
          let [starts, isAlive] = [0, false]
          const hasEnded = () => ids.every((id) => world.books.acked.has(id) || world.books.deadLettered.has(id))
          while (!hasEnded() && starts < 30) {
            starts++
            isAlive = true
            // Its scope stays open: a process that is killed closes nothing.
            const start = world.startBatch(queue, { retry, batch: BatchPolicy.make() }, ({ messages }) => {
              const end = Effect.suspend(() => {
                isAlive = false
                return Effect.andThen(kill, Effect.never)
              })
              return Effect.andThen(Effect.sleep(after), messages.some(({ id }) => id === culprit) ? end : Effect.void)
            })
            yield* Scope.provide(start, yield* Scope.make())
            yield* until("the end of the process, or of all messages", () => !isAlive || hasEnded())
          }
          assert.isAtMost(runsOf(world.books, culprit), retry.maxDeliveries)
          assert.isTrue(world.books.deadLettered.has(culprit), `seed ${seed}`)
          assert.isTrue(
            world.books.events.every((event) => event._tag !== "DeadLettered" || event.reason === "too-many-deliveries")
          )
          yield* world.balance
          return { starts, innocents: [...world.books.deadLettered].filter((id) => id !== culprit) }
        }),
      { seed: String(seed), wrap, options }
    )
  }

  const seeds = Array.from({ length: process.env["REQUEUE_CAMPAIGNS"] === "1" ? 200 : 10 }, (_, index) => index)
  const counted = { faults: { countReleases: true } }

  test.each<readonly [string, Life]>([
    ["", { latency: 0, after: 10 }],
    [", with messages that are on their way already", { latency: 1, after: 10 }],
    [", with messages that are on their way already, at once", { latency: 1, after: 0 }],
    [", where giving back counts", { latency: 0, after: 10, options: counted }]
  ])("ends among the dead letters, and none of its neighbours does, for each seed%s", async (_, life) => {
    for (const seed of seeds) {
      const { innocents, starts } = await live(seed, life)
      assert.deepStrictEqual(innocents, [], `seed ${seed}`)
      assert.isAtMost(starts, retry.maxDeliveries + 1)
    }
  })

  test("takes hardly a neighbour with it where messages are on their way already and giving back counts", async () => {
    const innocents: Array<string> = []
    for (const seed of seeds) {
      innocents.push(...(await live(seed, { latency: 1, after: 10, options: counted })).innocents)
    }
    // A neighbour must be behind the culprit ten times in a row, and they are drawn.
    assert.isAtMost(innocents.length, 4)
  })
})
