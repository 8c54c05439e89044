/** Carries out settlements. It never fails as a whole: it answers with the deliveries that could not be settled. MUST 4. */
import { Broker, BrokerError } from "@requeue/core/adapter-kit"
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
}

/** The adapter's handle for settling a delivery. */
export interface Receipt {
  readonly received: Received
  /** Whether it is settled, or being settled. */
  isTaken: boolean
}

const settledBefore = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "acme",
    operation: "settle",
    queue,
    reason: "LeaseLost",
    detail: "the delivery was settled before"
  })

const carryOut = (
  command: Command,
  { received }: Receipt,
  settler: Settler
): Effect.Effect<void, BrokerError.BrokerError> => {
  const { consumer, deadlines, queue } = settler
  const context = { operation: "settle", queue }
  const remove = call(context, deadlines, () => consumer.remove(received))
  switch (command._tag) {
    case "Remove":
      return remove
    case "Requeue":
      return call(context, deadlines, () => consumer.requeue(received))
    case "Copy":
      // The original goes only after the copy is confirmed: MUST 2. If it cannot be removed then, there are two of them;
      // to settle it again would make a third.
      return Effect.andThen(publish([command.outgoing], settler), Effect.ignore(remove))
  }
}

const settleOne = (
  { delivery, settlement }: Broker.SettleRequest,
  settler: Settler
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.suspend(() => {
    const { now, queue } = settler
    const receipt = delivery.receipt as Receipt // subscribe made it
    // MUST 3: it does not reach the broker a second time.
    if (receipt.isTaken) return Effect.succeed([{ delivery, error: settledBefore(queue), fate: "gone" as const }])
    receipt.isTaken = true
    return Effect.match(carryOut(toCommand(delivery, settlement, queue, now()), receipt, settler), {
      onSuccess: () => [],
      onFailure: (error) => {
        // It can be settled again, unless its lease or its connection is lost: say `gone` then.
        receipt.isTaken = false
        return [{ delivery, error, fate: Broker.fateOf(error) }]
      }
    })
  })

/** Settles deliveries of a consumer, side by side. */
export const settle = (
  requests: ReadonlyArray<Broker.SettleRequest>,
  settler: Settler
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.map(
    Effect.forEach(requests, (request) => settleOne(request, settler), { concurrency: "unbounded" }),
    (failures) => failures.flat()
  )
