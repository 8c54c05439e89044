/** Queues that were made before their type was written. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError, Backoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Formers from "../src/internal/declare/formers.ts"
import type { NativeObject, NativeQueue } from "../src/internal/declare/objects.ts"
import * as Plan from "../src/RabbitMqPlan.ts"
import * as RabbitMqOptions from "../src/RabbitMqOptions.ts"

const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(5000) })

const queuesOf = (queueType: "classic" | "quorum"): ReadonlyArray<NativeQueue> => {
  const settings = Result.getOrThrow(RabbitMqOptions.decode({ queueType }))
  const plan = Plan.make({ queue: "orders", retry, deadLetterQueues: ["orders.dlq"] }, settings, "4.3.6")
  if (plan instanceof Error) throw plan
  return [...plan.objects, ...plan.onDemand].filter((object) => object._tag === "Queue")
}

const argumentsOf = ({ arguments: args }: NativeQueue): string =>
  JSON.stringify(
    Object.keys(args)
      .toSorted()
      .map((name) => [name, args[name]])
  )

describe("the type of a queue", () => {
  it("is written for every queue of a plan", () => {
    for (const type of ["classic", "quorum"] as const)
      assert.deepStrictEqual(
        new Set(queuesOf(type).map(({ arguments: args }) => args["x-queue-type"])),
        new Set([type])
      )
  })

  it.effect("may be missing from a classic queue that is there: it is declared as it was made", () =>
    Effect.gen(function* () {
      for (const queue of queuesOf("classic")) {
        const { "x-queue-type": _, ...before } = queue.arguments
        const ask = (object: NativeObject) =>
          object._tag === "Queue" && argumentsOf(object) === argumentsOf({ ...queue, arguments: before })
            ? Effect.void
            : Effect.fail(refusal(queue))
        const formers = Formers.make()
        assert.isTrue(yield* formers.explain(queue, refusal(queue), ask))
        const own = formers.own(queue)
        assert.deepStrictEqual("arguments" in own && own.arguments, before)
        yield* ask(own)
      }
    })
  )
})

const refusal = ({ name }: NativeQueue) =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "declare",
    queue: name,
    reason: "QueueMismatch",
    detail:
      `PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue '${name}' in vhost '/': ` +
      "received the value 'classic' of type 'longstr' but current is none"
  })
