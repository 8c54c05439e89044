/** Dead letters that another program has written into the queue. */
import { Metadata } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { shared } from "../real/server.ts"
import { ids, on, outgoing, queueName } from "../world.ts"

const { url } = await shared()

/** A dead letter that says it comes from this queue. */
const forged = (dlq: string, queue: string, id: string) => {
  const error = { name: "Error", message: "forged" }
  const deadLetter = { queue, attempts: 1, reason: "permanent" as const, at: Date.now(), error }
  return { ...outgoing(dlq, id), metadata: { ...Metadata.make(id, Date.now()), deadLetter } }
}

test.each(["amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to.abc", ""])(
  "a letter that names %j is refused, and the others are redriven",
  async (name) => {
    const queue = queueName("named")
    const dlq = `${queue}.dlq`
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        const letters = yield* DeadLetters.make(dlq)
        yield* broker.publish([outgoing(queue, "there")])
        yield* broker.publish(ids(7).map((id, index) => forged(dlq, index === 3 ? name : queue, id)))
        const { since } = broker.connection()
        const report = yield* letters.redrive()
        const { queued, redriven, refused, unconfirmed, unremoved } = report
        assert.deepStrictEqual([redriven, refused, queued, unremoved, unconfirmed], [6, 1, 1, 0, 0])
        assert.strictEqual(broker.connection().since, since)
        assert.strictEqual((yield* broker.admin.counts(queue)).ready, 7)
      })
    )
  }
)
