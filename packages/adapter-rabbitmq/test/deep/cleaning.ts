/** Helpers of the tests of clean: what is listed and removed under a prefix, and a load whose books must balance. */
import { RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import { clean, type Scope, stale } from "../../src/clean.ts"
import type { RabbitMqOptions } from "../../src/index.ts"
import { consume, no, raw, type Run } from "./traps/trap.ts"
import { on, outgoing, queueName, until } from "../world.ts"

export const none = RetryPolicy.make()

/** A server to oneself: the objects of a prefix. */
export const place = (options: RabbitMqOptions.Options = {}) => {
  const prefix = queueName("p").slice(0, 20)
  const queue = queueName("stale")
  return { queue, prefix, options: { prefix, ...options } }
}

export const names = (objects: ReadonlyArray<{ readonly name: string }>) => objects.map(({ name }) => name).toSorted()

export const listed = (queue: string, options: RabbitMqOptions.Options, more: Scope = {}) =>
  Effect.runPromise(stale([{ queue, retry: none }], options, { isWhole: true, ...more }))

export const cleaned = (queue: string, options: RabbitMqOptions.Options, more: Scope = {}, retry = none) =>
  Effect.runPromise(clean([{ queue, retry }], options, { isWhole: true, ...more }))

/** Whether there is a queue of this name. */
export const exists = (url: string, queue: string): Promise<boolean> =>
  raw(url, (channel) => channel.checkQueue(queue)).then(
    () => true,
    () => false
  )

/** Publishes up to 100 messages a second while `work` runs; each message fails once, and comes again after the rung's delay. */
export const underLoad = (
  options: RabbitMqOptions.Options,
  queue: string,
  retry: RetryPolicy.RetryPolicy,
  work: () => Promise<unknown>
) =>
  on(options, (one) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const sent: Array<string> = []
      let isOver = false
      yield* consume(queue, runs, { retry, concurrency: 50 }, ({ attempts }) => (attempts === 1 ? no() : undefined))
      const publishing = Effect.gen(function* () {
        while (!isOver) {
          const id = `m${sent.length}`
          sent.push(id)
          yield* one.publish([outgoing(queue, id)])
          yield* Effect.sleep(10)
        }
      })
      const working = Effect.promise(work).pipe(Effect.ensuring(Effect.sync(() => (isOver = true))))
      yield* Effect.all([publishing, working], { concurrency: "unbounded" })
      const second = () => new Set(runs.flatMap(({ attempts, id }) => (attempts > 1 ? [id] : [])))
      yield* until(
        () => `${sent.length} second runs, there were ${second().size}`,
        () => second().size === sent.length
      )
      return { runs, sent }
    })
  )

/** Each message was run at its first attempt and, no earlier than its delay, at its second. */
export const balanced = (
  { runs, sent }: { readonly runs: ReadonlyArray<Run>; readonly sent: ReadonlyArray<string> },
  ms: number
) => {
  const byId = Map.groupBy(runs, ({ id }) => id)
  assert.strictEqual(byId.size, sent.length)
  for (const [id, mine] of byId) {
    const first = mine.find(({ attempts }) => attempts === 1)
    // What was taken out of a delay when a connection was lost counts as returned.
    const second = mine.find(({ attempts }) => attempts > 1)
    assert.isDefined(first, `the first run of ${id}`)
    assert.isAtLeast(second!.at - first!.at, ms, `the second run of ${id}`)
  }
  return runs.length - 2 * sent.length
}
