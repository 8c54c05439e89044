/**
 * A plan for a queue that is itself the dead-letter queue of others. What SQS moves there has been received as often as
 * their `maxReceiveCount` says, and its count goes on: the queue's own must lie above both, or SQS moves it on unseen.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListDeadLetterSourceQueues.html
 */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Limits from "../limits.ts"
import type { Plan, Queue } from "./objects.ts"
import type { QueueCalls } from "./queueCalls.ts"
import { allowanceOf, redriveOf } from "./verify.ts"

/** Who may not ask, and a server that cannot tell, does not know. */
const orUnknown = <A>(
  effect: Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A | undefined, BrokerError.BrokerError> =>
  Effect.catchIf(
    effect,
    ({ reason }) => reason === "AccessRefused" || reason === "Unsupported",
    () => Effect.undefined
  )

/** The most receives that a message brings with it; `undefined` where there are sources that do not tell. */
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

/** The plan, with the receives that messages may bring with them. Where these are not known, it has no backstop. */
export const adapted = (plan: Plan, calls: QueueCalls): Effect.Effect<Plan, BrokerError.BrokerError> =>
  receivesOf(plan.queues.at(-1)!, calls).pipe(
    Effect.map((before) => (before === 0 ? plan : withReceives(plan, before))),
    Effect.catchIf(
      ({ reason }) => reason === "QueueMissing",
      () => Effect.succeed(plan)
    )
  )
