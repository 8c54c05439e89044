/** Carries out settlements on the session that delivered. */
import { type Broker, BrokerError, type Delivery, type Outgoing, type BoundedMap } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Properties } from "../client.ts"
import type { Receipt, Session } from "../consume/session.ts"
import type { Command } from "./toCommand.ts"

const failure = (queue: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "rabbitmq", operation: "settle", queue, reason, detail })

const lost = (queue: string): BrokerError.BrokerError =>
  failure(queue, "ConnectionLost", "the channel that delivered is gone; the server delivers the message again")

/**
 * The core takes a lost connection for a lost delivery. Here only the publishing one was lost, and the delivery is still
 * ours.
 */
const stillOurs = (error: BrokerError.BrokerError): BrokerError.BrokerError =>
  error.reason === "ConnectionLost" || error.reason === "LeaseLost"
    ? failure(error.queue ?? "", "Timeout", `the copy may have been stored or not: ${error.detail}`)
    : error

/** What must be stored before its original is acknowledged. */
interface Copy {
  readonly delivery: Delivery.Delivery
  readonly message: Outgoing.Outgoing
}

type Fail = (delivery: Delivery.Delivery, error: BrokerError.BrokerError) => void

const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt

export const make = (env: {
  readonly queue: string
  readonly command: (delivery: Delivery.Delivery, settlement: Broker.SettleRequest["settlement"]) => Command
  readonly publish: (
    copies: ReadonlyArray<{ readonly message: Outgoing.Outgoing; readonly original: Properties }>,
    confirmed: (index: number) => void
  ) => Effect.Effect<ReadonlyArray<BrokerError.BrokerError | undefined>>
  /** Copies that are done with; their redelivery after a lost ack is acked. */
  readonly done: BoundedMap.BoundedMap<true>
}) => {
  const { done, queue } = env

  const ack = (session: Session, receipts: ReadonlyArray<Receipt>): boolean => {
    // Remembered even if it cannot be written: the work is done, whatever the server will say.
    for (const { copy } of receipts) if (copy !== undefined) done.set(copy, true)
    return session.ack(receipts)
  }

  /** Why a copy's original is not settled. */
  const uncopied = (receipt: Receipt, error: BrokerError.BrokerError): BrokerError.BrokerError => {
    if (!receipt.session.isOpen()) return lost(queue)
    receipt.session.untake(receipt)
    return stillOurs(error)
  }

  const copy = (copies: ReadonlyArray<Copy>, fail: Fail): Effect.Effect<void> => {
    const publications = copies.map(({ delivery, message }) => ({ message, original: receiptOf(delivery).properties }))
    const published = env.publish(publications, (index) => {
      const receipt = receiptOf(copies[index]!.delivery)
      // Done, even if the ack cannot be written any more: the copy is stored, and the redelivery will be acked.
      ack(receipt.session, [receipt])
    })
    return Effect.map(published, (answers) =>
      copies.forEach(({ delivery }, index) => {
        const error = answers[index]
        if (error !== undefined) fail(delivery, uncopied(receiptOf(delivery), error))
      })
    )
  }

  /** Why it cannot be settled here. */
  const refusal = (receipt: Receipt): BrokerError.BrokerError | undefined => {
    if (!receipt.session.isOpen()) return lost(queue)
    return receipt.session.take(receipt) ? undefined : failure(queue, "LeaseLost", "the delivery was settled before")
  }

  /** Writes what can be written at once, and answers with what is still to be copied. */
  const carryOut = (requests: ReadonlyArray<Broker.SettleRequest>, fail: Fail): ReadonlyArray<Copy> => {
    const acks = new Map<Session, Array<Delivery.Delivery>>()
    const copies: Array<Copy> = []
    for (const { delivery, settlement } of requests) {
      const receipt = receiptOf(delivery)
      const refused = refusal(receipt)
      if (refused !== undefined) {
        fail(delivery, refused)
        continue
      }
      const command = env.command(delivery, settlement)
      switch (command._tag) {
        case "Ack": {
          const known = acks.get(receipt.session)
          if (known === undefined) acks.set(receipt.session, [delivery])
          else known.push(delivery)
          break
        }
        case "Copy":
          copies.push({ delivery, message: command.outgoing })
          break
        default:
          if (!receipt.session.giveBack(receipt, command._tag)) fail(delivery, lost(queue))
      }
    }
    // After what goes back, so that a run of acks may pass over it.
    for (const [session, deliveries] of acks) {
      if (ack(session, deliveries.map(receiptOf))) continue
      for (const delivery of deliveries) fail(delivery, lost(queue))
    }
    return copies
  }

  const settleNow = (
    requests: ReadonlyArray<Broker.SettleRequest>
  ): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
    Effect.suspend(() => {
      const failures: Array<Broker.SettleFailure> = []
      const fail: Fail = (delivery, error) => failures.push({ delivery, error })
      const copies = carryOut(requests, fail)
      return copies.length === 0 ? Effect.succeed(failures) : Effect.as(copy(copies, fail), failures)
    })

  return {
    settle: (requests: ReadonlyArray<Broker.SettleRequest>): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
      Effect.suspend(() => {
        const sessions = new Set<Session>()
        for (const { delivery } of requests) sessions.add(receiptOf(delivery).session)
        const barriers = [...sessions].flatMap(({ credit }) => credit.barrier() ?? [])
        return barriers.length === 0
          ? settleNow(requests)
          : Effect.andThen(
              Effect.promise(() => Promise.all(barriers)),
              settleNow(requests)
            )
      }),
    ack
  }
}
