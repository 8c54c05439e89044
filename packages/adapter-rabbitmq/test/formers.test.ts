/** Queues that were made before their type was written. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError, Backoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Formers from "../src/internal/declare/legacyQueues.ts"
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
        assert.deepStrictEqual(yield* explained(queue, before), before)
      }
    })
  )

  it.effect("may be the virtual host's default, which has made a quorum queue: it is declared as one", () =>
    Effect.gen(function* () {
      for (const queue of queuesOf("classic")) {
        const before = { ...queue.arguments, "x-queue-type": "quorum" }
        assert.deepStrictEqual(yield* explained(queue, before), before)
      }
    })
  )

  it.effect("is refused, and not asked for without end, where neither declaration is taken", () =>
    Effect.gen(function* () {
      const [queue] = queuesOf("classic")
      const { "x-queue-type": _, ...untyped } = queue!.arguments
      // Its default is another one by now, which the server writes into what has no type.
      const server = { ...untyped, "x-queue-type": undefined }
      assert.isUndefined(yield* explained(queue!, server, { ...untyped, "x-queue-type": "quorum" }))
    })
  )
})

/** The arguments with which a queue is declared that has these on the server; `untyped` are those that the server takes for none. */
const explained = Effect.fnUntraced(function* (
  queue: NativeQueue,
  there: NativeQueue["arguments"],
  untyped?: NativeQueue["arguments"]
) {
  const ask = (object: NativeObject) => {
    const args = object._tag === "Queue" ? object.arguments : {}
    return refusedBy(queue.name, "x-queue-type" in args ? args : (untyped ?? args), there)
  }
  const formers = Formers.make()
  const declare = Effect.flip(ask(formers.own(queue)))
  for (let tried = 0; tried < 5; tried++) {
    const refused = yield* Effect.result(declare)
    if (Result.isFailure(refused)) return undefined
    if (!(yield* formers.explain(queue, refused.success, ask))) return undefined
    const own = formers.own(queue)
    if (Result.isSuccess(yield* Effect.result(ask(own)))) return "arguments" in own ? own.arguments : undefined
  }
  throw new Error("asked without end")
})

/** Compares arguments as the server does, one by one, and names the first that differs. */
const refusedBy = (name: string, asked: NativeQueue["arguments"], there: NativeQueue["arguments"]) => {
  const told = (value: unknown) => (value === undefined ? "none" : `the value '${String(value)}' of type 'longstr'`)
  const other = [...new Set([...Object.keys(asked), ...Object.keys(there)])].find((key) => asked[key] !== there[key])
  return other === undefined
    ? Effect.void
    : Effect.fail(
        new BrokerError.BrokerError({
          broker: "rabbitmq",
          operation: "declare",
          queue: name,
          reason: "QueueMismatch",
          detail:
            `PRECONDITION_FAILED - inequivalent arg '${other}' for queue '${name}' in vhost '/': ` +
            `received ${told(asked[other])} but current is ${told(there[other])}`
        })
      )
}
