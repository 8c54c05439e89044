/** Subscriptions: a consumer of a queue, which lasts as long as its scope. */
import { Bag, type Broker } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { identify } from "./toDelivery.ts"
import type { Consumer, Queues } from "../queues.ts"
import type { Settle } from "../settle/settle.ts"
import type { Dispatch } from "./dispatch.ts"

/** Opens a subscription. When its scope closes, unsettled messages are returned to their old positions. */
export const subscribe = (
  options: Broker.SubscribeOptions,
  { dispatch, queues, settle }: { readonly queues: Queues; readonly dispatch: Dispatch; readonly settle: Settle }
): Effect.Effect<Broker.Subscription, never, Scope.Scope> => {
  const open = Effect.sync(() => {
    for (const name of options.deadLetterQueues) queues.get(name)
    const queue = queues.get(options.queue)
    const consumer: Consumer = { options, queue, receipts: Bag.make(), credit: 0, isReady: false }
    queue.consumers.add(consumer)
    return consumer
  })
  const close = (consumer: Consumer) =>
    Effect.sync(() => {
      dispatch.credit(consumer, 0)
      consumer.queue.consumers.delete(consumer)
      dispatch.lose(consumer.queue, [...consumer.receipts])
    })
  return Effect.map(Effect.acquireRelease(open, close), (consumer) => ({
    credit: (limit) => dispatch.credit(consumer, limit),
    ...settle(consumer),
    identify
  }))
}
