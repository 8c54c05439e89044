/** Carries out settlements. It never fails as a whole: it returns the deliveries that could not be settled. MUST 4. */
import { type BoundedMap, Broker, BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Consumer, Received } from "../client.ts"
import { publish } from "../publish/publisher.ts"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"
import { type Command, toCommand } from "./toCommand.ts"

/** Of a consumer, and of its queue. */
interface Settler extends Tools {
  readonly consumer: Consumer
  readonly queue: string
  /** Messages whose copy is stored, by Acme's ids. If one is redelivered, it is removed. MUST 2. */
  readonly copied: BoundedMap.BoundedMap<true>
}

/** The adapter's handle for settling a delivery. */
export interface Receipt {
  readonly received: Received
  /** Whether it is settled, or being settled. */
  isTaken: boolean
}

const gone = (queue: string, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "acme", operation: "settle", queue, reason: "LeaseLost", detail })

const carryOut = (
  command: Command,
  { received }: Receipt,
  settler: Settler
): Effect.Effect<void, BrokerError.BrokerError> => {
  const { consumer, copied, deadlines, queue } = settler
  const context = { operation: "settle", queue }
  const remove = call(context, deadlines, () => consumer.remove(received))
  switch (command._tag) {
    case "Remove":
      return remove
    case "Requeue":
      return call(context, deadlines, () => consumer.requeue(received))
    case "Copy":
      // The original is removed only after the copy is confirmed: MUST 2. From then on the settlement has succeeded, even if the
      // original cannot be removed now: then it is removed when it is redelivered.
      return Effect.andThen(
        Effect.tap(publish([command.outgoing], settler), () => Effect.sync(() => copied.set(received.id, true))),
        Effect.ignore(remove)
      )
  }
}

const settleOne = (
  { delivery, settlement }: Broker.SettleRequest,
  settler: Settler
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.suspend(() => {
    const { consumer, now, queue } = settler
    const receipt = delivery.receipt as Receipt // subscribe made it
    const lost = (detail: string) => Effect.succeed([{ delivery, error: gone(queue, detail), fate: "lost" as const }])
    // MUST 3: it does not reach the broker a second time, and a lost delivery is not copied either.
    if (receipt.isTaken) return lost("the delivery was settled before")
    if (!consumer.holds(receipt.received)) return lost("its lease or its connection is lost; Acme delivers it again")
    receipt.isTaken = true
    return Effect.match(carryOut(toCommand(delivery, settlement, queue, now()), receipt, settler), {
      onSuccess: () => [],
      onFailure: (error) => {
        // It can be settled again, unless its lease or its connection was lost meanwhile.
        receipt.isTaken = false
        return [{ delivery, error, fate: consumer.holds(receipt.received) ? Broker.fateOf(error) : "lost" }]
      }
    })
  })

/** Settles deliveries of a consumer concurrently. */
export const settle = (
  requests: ReadonlyArray<Broker.SettleRequest>,
  settler: Settler
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.map(
    Effect.forEach(requests, (request) => settleOne(request, settler), { concurrency: "unbounded" }),
    (failures) => failures.flat()
  )
