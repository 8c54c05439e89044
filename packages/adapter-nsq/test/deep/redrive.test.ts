/** A dead letter goes back to the channel that gave it up, and to no other one of its topic. */
import { RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { server } from "./server.ts"
import { consume, found, no, on, publishAll, queueName, until, type Run } from "../world.ts"

const one = await server()

test.each(["always", "never"] as const)("with envelope: %s", async (envelope) => {
  const topic = queueName("orders")
  const [billing, shipping] = [`${topic}/billing`, `${topic}/shipping`]
  const shipped: Array<Run> = []
  const billed: Array<string> = []
  let isDown = true
  await on({ ...one.direct, envelope }, (broker) =>
    Effect.gen(function* () {
      yield* consume(shipping, shipped)
      yield* consume(billing, [], { retry: RetryPolicy.make({ maxRetries: 0 }) }, ({ body }) =>
        isDown ? no() : Effect.sync(() => billed.push(body))
      )
      yield* publishAll(broker, topic, ["a"])
      const letters = yield* DeadLetters.make(`${billing}.dlq`)
      yield* found(
        "the dead letter",
        Effect.map(letters.list(), ([letter]) => letter)
      )
      isDown = false
      assert.strictEqual((yield* letters.redrive()).redriven, 1)
      yield* until("the redriven run", () => billed.length === 1)
      // What comes by the topic comes to both channels at once.
      yield* publishAll(broker, topic, ["b"])
      yield* until("the message behind it", () => billed.length === 2 && shipped.length > 1)
    })
  )
  assert.deepStrictEqual(billed, ["a", "b"])
  assert.strictEqual(shipped.length, 2)
})
