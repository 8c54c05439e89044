/** Carries out settlements on the session that delivered. */
import { BrokerError, type Reason } from "@requeue/core/BrokerError"
import type { SettleFailure, SettleRequest } from "@requeue/core/Broker"
import type { Delivery } from "@requeue/core/Delivery"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Node } from "./nodes.ts"
import type { Receipt } from "./session.ts"
import { timedOut } from "./toBrokerError.ts"
import type { Command } from "./toCommand.ts"

type Answer = Exclude<Command, { readonly _tag: "Copy" }>
type Copy = Extract<Command, { readonly _tag: "Copy" }>

const failure = (queue: string, reason: Reason, detail: string): BrokerError =>
  new BrokerError({ broker: "nsq", operation: "settle", queue, reason, detail })

const lost = (queue: string): BrokerError =>
  failure(
    queue,
    "ConnectionLost",
    "the connection that delivered is gone; nsqd delivers again when the lease has ended"
  )

const notOurs = (queue: string): BrokerError =>
  failure(queue, "LeaseLost", "the delivery was settled before, or nsqd has taken it back")

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
  /** Milliseconds within which an answer must have left us. */
  readonly timeout: number
  readonly command: (delivery: Delivery, settlement: SettleRequest["settlement"]) => Command
  readonly publish: (copy: Copy, prefer: Node) => Effect.Effect<void, BrokerError>
  /** A message is done with, even if nsqd does not hear of it. */
  readonly finished: (receipt: Receipt) => void
  /** A message is to come again, not before this time in milliseconds since the epoch. */
  readonly requeued: (receipt: Receipt, due: number) => void
}) => {
  const { queue } = env

  const answer = (receipt: Receipt, command: Answer): Effect.Effect<BrokerError | undefined> =>
    Effect.callback<BrokerError | undefined>((resume) => {
      const { id, session } = receipt
      if (command._tag === "Fin") env.finished(receipt)
      else if (command.delay > 0) env.requeued(receipt, command.due)
      const text = command._tag === "Fin" ? `FIN ${id}\n` : `REQ ${id} ${command.delay}\n`
      session.answer(text, (error) => resume(Effect.succeed(error instanceof Error ? lost(queue) : undefined)))
    }).pipe(
      Effect.timeoutOrElse({
        duration: Duration.millis(env.timeout),
        orElse: () =>
          Effect.sync(() => {
            // What cannot be written for so long will not be: nsqd delivers again.
            const late = timedOut({ operation: "settle", queue, node: receipt.session.node.name }, env.timeout)
            receipt.session.connection.destroy(late)
            return lost(queue)
          })
      })
    )

  const copy = (receipt: Receipt, command: Copy): Effect.Effect<BrokerError | undefined> =>
    Effect.matchEffect(env.publish(command, receipt.session.node), {
      // Done, even if it cannot be finished any more: the copy is stored.
      onSuccess: () => Effect.as(answer(receipt, { _tag: "Fin" }), undefined),
      onFailure: (error) =>
        Effect.sync(() => {
          receipt.session.untake(receipt)
          if (receipt.session.isOpen()) return stillOurs(error)
          receipt.session.drop(receipt)
          return lost(queue)
        })
    })

  const one = ({ delivery, settlement }: SettleRequest): Effect.Effect<BrokerError | undefined> =>
    Effect.suspend(() => {
      const receipt = delivery.receipt as Receipt
      const { session } = receipt
      if (!session.isOpen()) {
        session.drop(receipt)
        return Effect.succeed(lost(queue))
      }
      if (!session.take(receipt)) return Effect.succeed(notOurs(queue))
      const command = env.command(delivery, settlement)
      return command._tag === "Copy" ? copy(receipt, command) : answer(receipt, command)
    })

  const settle = (requests: ReadonlyArray<SettleRequest>): Effect.Effect<ReadonlyArray<SettleFailure>> =>
    Effect.map(Effect.forEach(requests, one, { concurrency: "unbounded" }), (errors) =>
      errors.flatMap((error, index) => (error === undefined ? [] : [{ delivery: requests[index]!.delivery, error }]))
    )

  /** nsqd answers to `TOUCH` only when it fails; by the next one, that is known. */
  const extend = (deliveries: ReadonlyArray<Delivery>): Effect.Effect<ReadonlyArray<SettleFailure>> =>
    Effect.sync(() =>
      deliveries.flatMap((delivery) => {
        const receipt = delivery.receipt as Receipt
        const { session } = receipt
        if (!session.isOpen()) return [{ delivery, error: lost(queue) }]
        if (!session.holds(receipt)) return [{ delivery, error: notOurs(queue) }]
        session.write(`TOUCH ${receipt.id}\n`, () => {})
        return []
      })
    )

  return { settle, extend }
}
