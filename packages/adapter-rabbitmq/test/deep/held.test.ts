/** Letters that somebody else has: a redrive tells of them, and a count does not take them for gone. */
import { DeadLetters } from "@requeue/operations"
import { connect } from "amqplib"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { shared } from "../real/server.ts"
import type { RabbitMqOptions } from "../../src/index.ts"
import { ids, on, outgoing, queueName, until } from "../world.ts"

const { broker, url } = await shared()
const management = broker.managementUrl

/** Takes messages as another program does, and has them until the end. */
const takeAndHold = (queue: string, count: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const model = await connect(url)
      const channel = await model.createChannel()
      for (let left = count; left > 0; left--) await channel.get(queue)
      return model
    }),
    (model) => Effect.promise(() => model.close())
  )

const told: ReadonlyArray<readonly [string, RabbitMqOptions.Options, number | undefined]> = [
  ["may have more", {}, undefined],
  ...(management === undefined ? [] : [["has three", { management }, 3] as const])
]

const untilCounted = (letters: DeadLetters.DeadLetters, count: number) =>
  until(`a count of ${count}`, async () => (await Effect.runPromise(letters.count)) === count, 30_000)

test.each(told)("a redrive says that another reader %s", async (_, options, held) => {
  const queue = queueName("held")
  await on({ url, ...options }, (one) =>
    Effect.gen(function* () {
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      yield* one.publish(ids(3).map((id) => outgoing(`${queue}.dlq`, id)))
      const report = yield* Effect.scoped(
        Effect.gen(function* () {
          yield* takeAndHold(`${queue}.dlq`, 3)
          // The management interface counts every five seconds.
          if (held !== undefined) yield* untilCounted(letters, held)
          return yield* letters.redrive({ to: queue, create: true })
        })
      )
      assert.deepInclude(report, { redriven: 0, queued: 0, held })
      assert.deepInclude(yield* letters.redrive({ to: queue, create: true }), { redriven: 3, held: 0 })
    })
  )
})

test("a redrive right after browsing has all letters", async () => {
  const queue = queueName("seen")
  await on({ url }, (one) =>
    Effect.gen(function* () {
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      for (let turn = 0; turn < 10; turn++) {
        yield* one.publish(ids(6).map((id) => outgoing(`${queue}.dlq`, id)))
        assert.lengthOf(yield* letters.group(), 1)
        assert.strictEqual(yield* letters.count, 6)
        assert.lengthOf(yield* letters.group(), 1)
        assert.deepInclude(yield* letters.redrive({ to: queue, create: true }), { redriven: 6, queued: 0, held: 0 })
      }
    })
  )
})
