/** Carries out settlements. `Settling` keeps MUST 2, 3 and 4; here is what Acme does. */
import { type BoundedMap, type Broker, BrokerError } from "@requeue/core/port"
import { Settling } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type { Consumer, Received } from "../client.ts"
import { publish } from "../publish/publisher.ts"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"
import { type Copy, type Direct, remove, toCommand } from "./toCommand.ts"

/** Of a consumer, and of its queue. */
interface Dependencies extends Tools {
  readonly consumer: Consumer
  readonly queue: string
  /** Messages whose copy is stored, by Acme's ids. If one is redelivered, it is removed. MUST 2. */
  readonly copied: BoundedMap.BoundedMap<true>
  readonly fork: (effect: Effect.Effect<unknown>) => void
}

/** The adapter's handle for settling a delivery. */
export interface Receipt {
  readonly received: Received
  /** Whether it is settled, or being settled. */
  isTaken: boolean
}

const receiptOf = ({ delivery }: Broker.SettleRequest): Receipt => delivery.receipt as Receipt // subscribe made it

/** Returns the `settle` of a consumer. */
export const make = (dependencies: Dependencies): Broker.Subscription["settle"] => {
  const { consumer, copied, deadlines, fork, now, queue } = dependencies
  const lost = (detail: string): BrokerError.BrokerError =>
    new BrokerError.BrokerError({ broker: "acme", operation: "settle", queue, reason: "LeaseLost", detail })
  const loss = ({ received }: Receipt) =>
    consumer.holds(received) ? undefined : lost("its lease or its connection is lost; Acme redelivers the message")

  /** Ends a claim with the outcome of an effect. */
  const end = <C>(
    claim: Settling.Claim<C>,
    done: Settling.Done<C>,
    effect: Effect.Effect<void, BrokerError.BrokerError>
  ): void => fork(Effect.match(effect, { onFailure: (error) => done(claim, error), onSuccess: () => done(claim) }))

  return Settling.make<Direct, Copy>({
    claim: (request) => {
      const receipt = receiptOf(request)
      if (receipt.isTaken) return lost("the delivery was settled before")
      receipt.isTaken = true
      return loss(receipt)
    },
    release: (claim) => {
      const receipt = receiptOf(claim)
      receipt.isTaken = false
      return loss(receipt)
    },
    toCommand: ({ delivery, settlement }) => toCommand(delivery, settlement, queue, now()),
    ack: remove,
    carryOut: (claims, done) => {
      for (const claim of claims) {
        const { received } = receiptOf(claim)
        const settle = claim.command._tag === "Remove" ? consumer.remove : consumer.requeue
        end(
          claim,
          done,
          call({ operation: "settle", queue }, deadlines, () => settle(received))
        )
      }
    },
    publish: (claims, done) => {
      for (const claim of claims) end(claim, done, publish([claim.command.outgoing], dependencies))
    },
    stored: (request) => copied.set(receiptOf(request).received.id, true)
  })
}
