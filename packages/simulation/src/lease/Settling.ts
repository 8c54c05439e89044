/** Settles deliveries: messages are removed, hidden, or copied and then removed. */
import { type BoundedMap, type Broker, type Delivery, Outgoing, type Settlement } from "@requeue/core/port"
import { Settling } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type { Machine } from "../world/Machine.ts"
import { errorOf, type Requests, type Results } from "./Requests.ts"
import { limits, type Sending } from "./Server.ts"

/** The receipt of a delivery. */
export interface Receipt {
  readonly number: number
  readonly messageId: string
  /** Monotonic milliseconds. */
  readonly receivedAt: number
  /** Monotonic milliseconds: until then this client holds it. */
  leaseEnds: number
  /** Whether a call that hides it had no answer, and may still take effect. */
  isUncertain: boolean
  /** Whether it is settled, or is being settled. */
  isSettling: boolean
}

/** The receipt of a delivery of this client. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // this client makes all of them

const handleOf = ({ delivery }: Broker.SettleRequest): number => receiptOf(delivery).number

/** Milliseconds from its receipt for which a message can be hidden, less the time of the calls. */
export const longest = limits.hidden * 1000 - 10_000

/** Whether its lease has ended. `now` is in monotonic milliseconds. */
export const isExpired = ({ leaseEnds }: Receipt, now: number): boolean => now >= leaseEnds

type Direct = { readonly _tag: "Remove" } | { readonly _tag: "Hide"; readonly seconds: number }

const remove: Direct = { _tag: "Remove" }

const ended = errorOf("settle", "LeaseLost", "its lease had ended")

/** The dependencies of settling. */
export interface Dependencies {
  readonly queue: string
  readonly maxDeliveries: number
  readonly machine: Machine
  readonly requests: Requests
  readonly toSending: (outgoing: Outgoing.Outgoing, of: number) => Sending
  /**
   * Messages whose copy is stored, by the server's name. They are settled, whatever becomes of their removal: if the server
   * delivers them again, they are removed.
   */
  readonly copied: Pick<BoundedMap.BoundedMap<true>, "has" | "set">
  /** Called when this client no longer holds a delivery. */
  readonly onEnd: (delivery: Delivery.Delivery) => void
}

const commandOf = (
  delivery: Delivery.Delivery,
  settlement: Settlement.Settlement,
  { copied, machine, maxDeliveries, queue }: Dependencies
): Direct | Settling.Copy<Direct> => {
  const { isUncertain, messageId, receivedAt } = receiptOf(delivery)
  // Its copy may have been stored after it was redelivered.
  if (copied.has(messageId)) return remove
  const now = machine.wallClock()
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return remove
    case "DeadLetter":
      return { _tag: "Copy", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now) }
    case "Retry": {
      const seconds = Math.ceil(settlement.delay / 1000)
      const isKept = seconds * 1000 + machine.monotonic() - receivedAt <= longest
      if (isKept && !isUncertain) return { _tag: "Hide", seconds }
      return { _tag: "Copy", outgoing: Outgoing.retry(delivery, settlement, queue, now) }
    }
    case "Release":
      // The server counts every receive: a delayed message, or one that may be received only once more, waits as a copy.
      return settlement.delay === 0 && delivery.attempts < maxDeliveries
        ? { _tag: "Hide", seconds: 0 }
        : { _tag: "Copy", outgoing: Outgoing.hop(delivery, settlement, queue, now) }
  }
}

/** Makes the `settle` of a subscription. */
export const make = (env: Dependencies): Broker.Subscription["settle"] => {
  const { copied, machine, onEnd, requests, toSending } = env

  /** Ends claims with the results of a call. */
  const end = <C>(
    claims: ReadonlyArray<Settling.Claim<C>>,
    done: Settling.Done<C>,
    call: Effect.Effect<Results>
  ): void => {
    if (claims.length === 0) return
    machine.run(Effect.map(call, (results) => claims.forEach((claim, index) => done(claim, results[index]))))
  }

  return Settling.make<Direct, Settling.Copy<Direct>>({
    claim: ({ delivery, settlement }) => {
      const receipt = receiptOf(delivery)
      if (receipt.isSettling) return ended
      receipt.isSettling = true
      if (!isExpired(receipt, machine.monotonic())) return undefined
      onEnd(delivery)
      // It may still exist, and then no other consumer need work on it. The server would report success in any case.
      if (settlement._tag === "Ack" || settlement._tag === "Drop" || copied.has(receipt.messageId))
        machine.run(requests.remove([receipt.number]))
      return ended
    },
    release: ({ command, delivery }, _error, fate) => {
      const receipt = receiptOf(delivery)
      receipt.isSettling = false
      receipt.isUncertain ||= command._tag === "Hide" && fate === "unknown"
      return undefined
    },
    toCommand: ({ delivery, settlement }) => commandOf(delivery, settlement, env),
    ack: remove,
    carryOut: (claims, done) => {
      const removes: Array<Settling.Claim<Direct>> = []
      const hides: Array<{ claim: Settling.Claim<Direct>; handle: number; seconds: number; isBack: true }> = []
      for (const claim of claims) {
        const { command } = claim
        if (command._tag === "Remove") removes.push(claim)
        else hides.push({ claim, handle: handleOf(claim), seconds: command.seconds, isBack: true })
      }
      end(removes, done, requests.remove(removes.map(handleOf)))
      end(
        hides.map(({ claim }) => claim),
        done,
        requests.hide(hides)
      )
    },
    publish: (claims, done) => {
      for (const [queue, some] of Map.groupBy(claims, ({ command }) => command.outgoing.queue)) {
        const sendings = some.map((claim) => toSending(claim.command.outgoing, handleOf(claim)))
        end(some, done, requests.send(queue, sendings))
      }
    },
    stored: ({ delivery }) => copied.set(receiptOf(delivery).messageId, true),
    ended: ({ delivery }) => onEnd(delivery)
  })
}
