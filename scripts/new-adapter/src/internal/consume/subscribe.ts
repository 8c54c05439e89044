/** A consumer's subscription: deliveries under its credit, and their settlements. MUST 5, 6 and 8. */
import { BoundedMap, type Broker, type BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Consumer } from "../client.ts"
import { declare } from "../declare/declare.ts"
import { make as settling, type Receipt } from "../settle/settle.ts"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"
import { extend } from "./extend.ts" // leased
import { toDelivery } from "./toDelivery.ts"

/** The number of messages remembered because their copy is stored. */
const copiedLimit = 10_000

/** Delivers until the scope closes, which returns all unsettled messages. */
export const subscribe = (
  { deadLetterQueues, onDelivery, onReconnect, queue }: Broker.SubscribeOptions,
  tools: Tools
): Effect.Effect<Broker.Subscription, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    yield* declare([queue, ...deadLetterQueues], tools)
    const run = Effect.runForkWith(yield* Effect.context())
    const fork = (effect: Effect.Effect<unknown>): void => void run(effect)
    const copied = BoundedMap.make<true>(copiedLimit)
    const onMessage = (received: Receipt["received"]): void => {
      if (copied.has(received.id)) {
        fork(Effect.ignore(call({ operation: "settle", queue }, tools.deadlines, () => consumer.remove(received))))
        return
      }
      const receipt: Receipt = { received, isTaken: false }
      onDelivery({ ...toDelivery(received), receipt })
    }
    const consumer: Consumer = yield* Effect.acquireRelease(
      call({ operation: "subscribe", queue }, tools.deadlines, () =>
        tools.client.consume(queue, { onMessage, onReconnect: () => onReconnect() })
      ),
      ({ close }) => Effect.ignore(call({ operation: "unsubscribe", queue }, tools.deadlines, close))
    )
    return {
      credit: consumer.credit,
      settle: settling({ ...tools, consumer, copied, fork, queue }),
      extend: () => Effect.succeed([]), // unleased
      extend: (deliveries) => extend(deliveries, consumer, queue, tools), // leased
      identify: ({ receipt }) => (receipt as Receipt).received.id // onMessage made it
    }
  })
