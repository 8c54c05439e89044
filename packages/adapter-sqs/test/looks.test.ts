/** What looks and sweeps leave behind: others have every letter again when they end, however that is. */
import { DeadLetters } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { SqsBroker } from "../src/index.ts"
import { strict } from "./strict.ts"
import { has, ids, on, publishAll, queueName } from "./world.ts"

const { behind, url } = await strict()

/** Long polls as they are by default. */
const long = { waitTime: 20_000 }

test("what a purge with a filter passed over is visible at its end, however long polls are", async () => {
  const queue = queueName("passed")
  await on({ url, ...long }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(12))
      const letters = yield* DeadLetters.make(queue)
      const removed = yield* letters.purge({ filter: ({ metadata }) => metadata.id === ids(12)[3] })
      assert.strictEqual(removed, 1)
      assert.isTrue(yield* Effect.promise(() => has(behind, queue, 11, 0, 0)))
    })
  )
})

test("a connection that is closed gives back what an abandoned read has shown", async () => {
  const queue = queueName("abandoned")
  await on({ url }, (broker) => publishAll(broker, queue, ids(250)))
  const requeue = await connect(SqsBroker.layer({ url }), { logLevel: "None" })
  const letters = requeue.deadLetters(queue).read()[Symbol.asyncIterator]()
  for (let seen = 0; seen < 120; seen++) await letters.next()
  await requeue.close()
  assert.isTrue(await has(behind, queue, 250, 0, 0))
})
