/** Queues and rungs are deleted again and again while messages that nothing tells apart are copied into them: none is lost. */
import { Backoff, type Broker, Consumer, Producer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Schedule from "effect/Schedule"
import { assert, describe, test } from "vitest"
import { shared } from "../real/server.ts"
import { consume, no, raw, type Run } from "./traps/trap.ts"
import { on, queueName, until } from "../world.ts"

const { url } = await shared()

/** Rounds of each test. */
const rounds = Array.from({ length: Number(process.env["REQUEUE_ROUNDS"] ?? 1) }, (_, index) => index + 1)

/** Milliseconds of the only retry. */
const delay = 300
const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) })

const bodies = (count: number) => Array.from({ length: count }, (_, index) => JSON.stringify(`b${index}`))

/** What other programs send: nothing but a body. */
const publish = (queue: string, all: ReadonlyArray<string>) =>
  raw(url, async (channel) => {
    for (const body of all) channel.sendToQueue(queue, Buffer.from(body), { persistent: true })
  })

/** Takes all messages out of a queue, and notes their bodies; how many there were. */
const drain = (queue: string, seen: Set<string>) =>
  raw(url, async (channel) => {
    let count = 0
    for (;;) {
      const message = await channel.get(queue, { noAck: true })
      if (message === false) return count
      seen.add(message.content.toString())
      count++
    }
  }).catch(() => 0) // It is deleted.

/** Asks on a channel of its own, which ends where the server refuses. */
const attempt = (run: Parameters<typeof raw>[1]) => Effect.promise(() => raw(url, run).catch(() => {}))

/** Deletes queues when they are empty, and takes a rung from behind its exchange, at random moments, until it is interrupted. */
const deleting = (queues: ReadonlyArray<string>, rung: string | undefined, seen: Set<string>) =>
  Effect.forever(
    Effect.gen(function* () {
      yield* Effect.sleep(Math.random() * 40)
      for (const queue of queues) {
        yield* Effect.promise(() => drain(queue, seen))
        yield* attempt((channel) => channel.deleteQueue(queue, { ifEmpty: true }))
      }
      if (rung !== undefined) {
        yield* attempt((channel) => channel.unbindQueue(rung, rung, ""))
        yield* attempt((channel) => channel.deleteQueue(rung, { ifEmpty: true }))
      }
    })
  )

/** On classic queues, which alone can be deleted on condition that they are empty: so nothing is deleted that is not seen. */
const onClassic = (
  program: (broker: Broker.Service, prefix: string) => Effect.Effect<void, unknown, Broker.Broker | Scope.Scope>
) => {
  const prefix = queueName("p").slice(0, 20)
  return on({ url, prefix, queueType: "classic" }, (broker) => program(broker, prefix))
}

/** Waits until all bodies were seen in these queues, and fails with the number of those that were not. */
const allSeen = (queues: ReadonlyArray<string>, all: ReadonlyArray<string>, seen: Set<string>) =>
  until(
    () => `${all.filter((body) => !seen.has(body)).length} of ${all.length} messages`,
    async () => {
      for (const queue of queues) await drain(queue, seen)
      return all.every((body) => seen.has(body))
    }
  )

describe("messages that nothing tells apart, while what they are copied into is deleted:", () => {
  test.each(rounds)("1,000 foreign messages are retried and dead-lettered, round %i", { timeout: 300_000 }, () =>
    onClassic((_, prefix) =>
      Effect.gen(function* () {
        const queue = queueName("returned")
        const letters = `${queue}.dlq`
        const all = bodies(1000)
        const seen = new Set<string>()
        yield* consume(queue, [] as Array<Run>, { retry, concurrency: 50 }, no)
        yield* Effect.forkScoped(deleting([letters], `${prefix}.v1.q.delay.${delay}`, seen))
        yield* Effect.promise(() => publish(queue, all))
        yield* allSeen([letters, `${prefix}.v1.q.undelivered`], all, seen)
      })
    )
  )

  test.each(rounds)("what was sent with one id is there, round %i", { timeout: 300_000 }, () =>
    onClassic(() =>
      Effect.gen(function* () {
        const queue = queueName("one-id")
        const seen = new Set<string>()
        const sent: Array<string> = []
        const producer = yield* Producer.make<string>(queue)
        const deleter = yield* Effect.forkScoped(deleting([queue], undefined, seen))
        const send = (body: string) =>
          Effect.match(producer.send(JSON.parse(body), { id: "same" }), {
            onFailure: () => {},
            onSuccess: () => void sent.push(body)
          })
        yield* Effect.forEach(bodies(2000), send, { concurrency: 100 })
        deleter.interruptUnsafe()
        yield* allSeen([queue], sent, seen)
        assert.isAbove(sent.length, 0)
      })
    )
  )

  test.each(rounds)("of 400 foreign letters that are redriven each is there, round %i", { timeout: 300_000 }, () =>
    onClassic((_, prefix) =>
      Effect.gen(function* () {
        const queue = queueName("redriven")
        const letters = `${queue}.dlq`
        const all = bodies(400)
        const seen = new Set<string>()
        // Its consumer makes both queues, and ends.
        yield* Effect.scoped(Consumer.start(queue, { retry }, () => {}))
        yield* Effect.promise(() => publish(letters, all))
        const dead = yield* DeadLetters.make(letters)
        const deleter = yield* Effect.forkScoped(deleting([queue], undefined, seen))
        yield* Effect.retry(dead.redrive({ to: queue, create: true }), Schedule.recurs(5)).pipe(Effect.ignore)
        deleter.interruptUnsafe()
        yield* allSeen([queue, letters, `${prefix}.v1.q.undelivered`], all, seen)
      })
    )
  )
})
