/** How many messages a consumer takes that has no use for further ones. */
import { Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { strict } from "./strict.ts"
import { ids, inFlight, on, outgoing, queueName, until, untilEmpty } from "../real/world.ts"

const { behind, url } = await strict()

test.concurrent.each([
  [1, false],
  [3, false],
  [12, false],
  [3, true]
])("without prefetch, concurrency %i, FIFO %s: no more are taken than handlers have", async (concurrency, fifo) => {
  const queue = `${queueName("exact")}${fifo ? ".fifo" : ""}`
  const names = ids(5 * concurrency)
  const taken: Array<number> = []
  let seen = 0
  await on({ url }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish(names.map((id) => outgoing(queue, id, fifo ? { headers: { "message-group-id": id } } : {})))
      yield* Consumer.start(queue, { concurrency, prefetch: 0 }, ({ id }) =>
        Effect.gen(function* () {
          seen++
          yield* Effect.sleep(Number(id.slice(1)) % 3 === 0 ? 60 : 5)
          taken.push(yield* Effect.promise(() => inFlight(behind, queue)))
        })
      )
      yield* until("all of them", () => seen === names.length)
      yield* untilEmpty(behind, queue)
    })
  )
  assert.strictEqual(taken.length, names.length)
  assert.isAtMost(Math.max(...taken), concurrency)
})
