/** Renews leases. A lease that could not be renewed goes on: the next call tries again. MUST 7. */
import { Broker, BrokerError, type Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Consumer } from "../client.ts"
import type { Receipt } from "../settle/settle.ts"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"

const extendOne = (
  delivery: Delivery.Delivery,
  consumer: Consumer,
  queue: string,
  { deadlines }: Tools
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> => {
  const operation = "extend"
  const { received } = delivery.receipt as Receipt // subscribe made it
  const ended = new BrokerError.BrokerError({
    broker: "acme",
    operation,
    queue,
    reason: "LeaseLost",
    detail: "its lease has ended; Acme redelivers the message"
  })
  const lost = [{ delivery, error: ended, fate: "lost" as const }]
  if (!consumer.holds(received)) return Effect.succeed(lost)
  return Effect.match(
    call({ operation, queue }, deadlines, () => consumer.extend(received)),
    {
      onSuccess: () => [],
      onFailure: (error) => (consumer.holds(received) ? [{ delivery, error, fate: Broker.fateOf(error) }] : lost)
    }
  )
}

/** Renews the leases of deliveries, and returns those that it could not renew. */
export const extend = (
  deliveries: ReadonlyArray<Delivery.Delivery>,
  consumer: Consumer,
  queue: string,
  tools: Tools
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.map(
    Effect.forEach(deliveries, (delivery) => extendOne(delivery, consumer, queue, tools), { concurrency: "unbounded" }),
    (failures) => failures.flat()
  )
