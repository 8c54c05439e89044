/** Carries out settlements on the session that delivered. */
import { BrokerError, type Reason } from "@requeue/core/BrokerError"
import type { SettleFailure, SettleRequest } from "@requeue/core/Broker"
import type { Delivery } from "@requeue/core/Delivery"
import type { Outgoing } from "@requeue/core/Outgoing"
import * as Effect from "effect/Effect"
import type { Properties } from "./client.ts"
import type { Remembered } from "@requeue/core/Remembered"
import type { Answer, Receipt } from "./session.ts"
import type { Command } from "./toCommand.ts"

const failure = (queue: string, reason: Reason, detail: string): BrokerError =>
  new BrokerError({ broker: "rabbitmq", operation: "settle", queue, reason, detail })

const lost = (queue: string): BrokerError =>
  failure(queue, "ConnectionLost", "the channel that delivered is gone; the server delivers the message again")

/**
 * The core takes a lost connection for a lost delivery. Here only the publishing one was lost, and the delivery is still
 * ours.
 */
const stillOurs = (error: BrokerError): BrokerError =>
  error.reason === "ConnectionLost" || error.reason === "LeaseLost"
    ? failure(error.queue ?? "", "Timeout", `the copy may have been stored or not: ${error.detail}`)
    : error

export const make = (env: {
  readonly queue: string
  readonly command: (delivery: Delivery, settlement: SettleRequest["settlement"]) => Command
  readonly publish: (copy: Outgoing, original: Properties) => Effect.Effect<void, BrokerError>
  /** Copies that are done with; their redelivery after a lost ack is acked. */
  readonly done: Remembered
}) => {
  const { done, queue } = env

  const answer = (receipt: Receipt, how: Answer): BrokerError | undefined => {
    // Remembered even if it cannot be written: the work is done, whatever the server will say.
    if (how === "Ack" && receipt.copy !== undefined) done.add(receipt.copy)
    return receipt.session.answer(receipt, how) ? undefined : lost(queue)
  }

  const copy = (receipt: Receipt, outgoing: Outgoing): Effect.Effect<BrokerError | undefined> =>
    Effect.matchEffect(env.publish(outgoing, receipt.properties), {
      onSuccess: () =>
        Effect.sync(() => {
          // Done, even if the ack cannot be written any more: the copy is stored, and the redelivery will be acked.
          answer(receipt, "Ack")
          return undefined
        }),
      onFailure: (error) =>
        Effect.sync(() => {
          if (!receipt.session.isOpen()) return lost(queue)
          receipt.session.untake(receipt)
          return stillOurs(error)
        })
    })

  const one = ({ delivery, settlement }: SettleRequest): Effect.Effect<BrokerError | undefined> =>
    Effect.suspend(() => {
      const receipt = delivery.receipt as Receipt
      const { session } = receipt
      if (!session.isOpen()) return Effect.succeed(lost(queue))
      if (!session.take(receipt)) {
        return Effect.succeed(failure(queue, "LeaseLost", "the delivery was settled before"))
      }
      const command = env.command(delivery, settlement)
      return command._tag === "Copy" ? copy(receipt, command.outgoing) : Effect.succeed(answer(receipt, command._tag))
    })

  return {
    settle: (requests: ReadonlyArray<SettleRequest>): Effect.Effect<ReadonlyArray<SettleFailure>> =>
      Effect.suspend(() => {
        const barriers = requests.flatMap(
          ({ delivery }) => (delivery.receipt as Receipt).session.credit.barrier() ?? []
        )
        const all = Effect.map(Effect.forEach(requests, one, { concurrency: "unbounded" }), (errors) =>
          errors.flatMap((error, index) =>
            error === undefined ? [] : [{ delivery: requests[index]!.delivery, error }]
          )
        )
        return barriers.length === 0
          ? all
          : Effect.andThen(
              Effect.promise(() => Promise.all(barriers)),
              all
            )
      }),
    answer
  }
}
