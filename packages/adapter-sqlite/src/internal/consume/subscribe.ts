/** A consumer's subscription: deliveries under its credit, and their settlements. */
import { type Broker, type BrokerError, type Capabilities, Trouble } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Store } from "../connect/store.ts"
import * as Rows from "../rows.ts"
import * as AckWithin from "../settle/ackWithin.ts"
import * as Settle from "../settle/settle.ts"
import * as Consumer from "./consumer.ts"
import { extend } from "./extend.ts"
import { identify, receiptOf } from "./receipt.ts"

/** Creates missing queues. */
const declare = (queues: ReadonlyArray<string>, { add }: Store): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.callback((resume) => {
    add({
      operation: "subscribe",
      queue: queues[0],
      weight: queues.length,
      run: (connection) => {
        for (const queue of queues) Rows.declare(connection, queue)
      },
      end: (error) => resume(error === undefined ? Effect.void : Effect.fail(error))
    })
  })

/** Delivers until the scope closes, which returns all unsettled messages. */
export const subscribe = (
  { deadLetterQueues, onDelivery, queue, shareLimits }: Broker.SubscribeOptions,
  store: Store,
  { transactions }: Capabilities.Capabilities
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* declare([queue, ...deadLetterQueues], store)
    yield* store.keepAlive
    const run = Effect.runForkWith(yield* Effect.context())
    const trouble = Trouble.track(queue, store.now)
    const onOutcome = (error: BrokerError.BrokerError | undefined): void => {
      if (error !== undefined) run(trouble.tell(error))
      else if (trouble.current() !== undefined) run(trouble.over)
    }
    const consumer = yield* Effect.acquireRelease(
      Effect.sync(() => Consumer.make({ queue, store, shareLimits, onDelivery, onOutcome })),
      ({ close }) => Effect.callback<void>((resume) => close(() => resume(Effect.void)))
    )
    return {
      credit: consumer.credit,
      settle: Settle.make(consumer, queue, store),
      ackWithin: transactions ? AckWithin.make(queue, store) : undefined,
      extend: (deliveries) =>
        Effect.map(extend(deliveries, queue, store), (failures) => {
          for (const { delivery, fate } of failures) if (fate === "lost") consumer.held.delete(receiptOf(delivery))
          consumer.refill()
          return failures
        }),
      identify,
      trouble: trouble.current
    }
  })
