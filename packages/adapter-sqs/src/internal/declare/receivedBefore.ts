/**
 * A plan for a queue that is also a dead-letter queue. The messages that SQS moves there keep their receive count, up
 * to the source's `maxReceiveCount`. The queue's own `maxReceiveCount` must be higher than that plus its policy's
 * receives, or SQS moves the messages on unseen.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListDeadLetterSourceQueues.html
 */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Limits from "../limits.ts"
import type { Plan, Queue } from "./objects.ts"
import type { QueueCalls } from "./queueCalls.ts"
import { allowanceOf, redriveOf } from "./verify.ts"

/** Returns `undefined` without the permission, or if the server does not support the call. */
const orUnknown = <A>(
  effect: Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A | undefined, BrokerError.BrokerError> =>
  Effect.catchIf(
    effect,
    ({ reason }) => reason === "AccessRefused" || reason === "Unsupported",
    () => Effect.undefined
  )

/** Returns the highest number of receives that a moved message can have; `undefined` if a source does not report it. */
const receivesOf = Effect.fnUntraced(function* (planned: Queue, calls: QueueCalls) {
  const sources = yield* orUnknown(calls.sources(planned))
  if (sources === undefined) {
    const attributes = yield* orUnknown(calls.attributes(planned))
    return allowanceOf(attributes ?? {}).sources.length === 0 ? 0 : undefined
  }
  const found = yield* orUnknown(Effect.forEach(sources, calls.attributesAt(planned), { concurrency: 10 }))
  return found && Math.max(0, ...found.map((attributes) => redriveOf(attributes)?.maxReceiveCount ?? 0))
})

const withReceives = (plan: Plan, before: number | undefined): Plan => {
  const receives = plan.receives + (before ?? 0)
  const queues = plan.queues.map((queue): Queue => {
    if (queue.redrive === undefined) return queue
    const maxReceiveCount = Math.min(Limits.maxReceiveCount, queue.redrive.maxReceiveCount + (before ?? 0))
    const isAbove = before !== undefined && maxReceiveCount > receives
    return { ...queue, redrive: isAbove ? { ...queue.redrive, maxReceiveCount } : undefined }
  })
  return { ...plan, queues, receives }
}

/** Returns the plan with the receives of moved messages. If these are unknown, the plan has no backstop. */
export const adapted = (plan: Plan, calls: QueueCalls): Effect.Effect<Plan, BrokerError.BrokerError> =>
  receivesOf(plan.queues.at(-1)!, calls).pipe(
    Effect.map((before) => (before === 0 ? plan : withReceives(plan, before))),
    Effect.catchIf(
      ({ reason }) => reason === "QueueMissing",
      () => Effect.succeed(plan)
    )
  )
