/** Carries out settlements. It never fails as a whole: it answers with the deliveries that could not be settled. MUST 4. */
import { type Broker, BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Received } from "../client.ts"
import { publish } from "../publish/publisher.ts"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"
import { type Command, toCommand } from "./toCommand.ts"

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
  queue: string,
  tools: Tools
): Effect.Effect<void, BrokerError.BrokerError> => {
  const { client, deadlines } = tools
  const context = { operation: "settle", queue }
  const remove = call(context, deadlines, () => client.remove(received))
  switch (command._tag) {
    case "Remove":
      return remove
    case "Requeue":
      return call(context, deadlines, () => client.requeue(received))
    case "Copy":
      // The original goes only after the copy is confirmed: MUST 2. If it cannot be removed then, there are two of them;
      // to settle it again would make a third.
      return Effect.andThen(publish([command.outgoing], tools), Effect.ignore(remove))
  }
}

const settleOne = (
  { delivery, settlement }: Broker.SettleRequest,
  queue: string,
  tools: Tools
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.suspend(() => {
    const receipt = delivery.receipt as Receipt // subscribe made it
    // MUST 3: it does not reach the broker a second time.
    if (receipt.isTaken) return Effect.succeed([{ delivery, error: settledBefore(queue) }])
    receipt.isTaken = true
    return Effect.match(carryOut(toCommand(delivery, settlement, queue, tools.now()), receipt, queue, tools), {
      onSuccess: () => [],
      onFailure: (error) => {
        receipt.isTaken = false
        return [{ delivery, error }]
      }
    })
  })

/** Settles deliveries of a queue, side by side. */
export const settle = (
  requests: ReadonlyArray<Broker.SettleRequest>,
  queue: string,
  tools: Tools
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.map(
    Effect.forEach(requests, (request) => settleOne(request, queue, tools), { concurrency: "unbounded" }),
    (failures) => failures.flat()
  )
