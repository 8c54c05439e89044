/** A consumer's stay in a queue, from the opening of its scope to the closing. */
import { Bag, type Broker } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Dispatch } from "./dispatch.ts"
import type { Settle } from "../settle/settle.ts"
import type { Consumer, Store } from "../queues.ts"

export const subscribe = (
  options: Broker.SubscribeOptions,
  env: { readonly store: Store; readonly dispatch: Dispatch; readonly settle: Settle }
): Effect.Effect<Broker.Subscription, never, Scope.Scope> => {
  const open = Effect.sync(() => {
    for (const name of options.deadLetterQueues) env.store.queue(name)
    const queue = env.store.queue(options.queue)
    const consumer: Consumer = { options, queue, loans: Bag.make(), credit: 0, isHungry: false }
    queue.consumers.add(consumer)
    return consumer
  })
  const close = (consumer: Consumer) =>
    Effect.sync(() => {
      env.dispatch.credit(consumer, 0)
      consumer.queue.consumers.delete(consumer)
      env.dispatch.lose(consumer.queue, [...consumer.loans])
    })
  return Effect.map(Effect.acquireRelease(open, close), (consumer) => ({
    credit: (limit) => env.dispatch.credit(consumer, limit),
    settle: (requests) => Effect.sync(() => env.settle.settle(consumer, requests)),
    extend: (deliveries) => Effect.sync(() => env.settle.extend(consumer, deliveries))
  }))
}
