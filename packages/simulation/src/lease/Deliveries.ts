/** The deliveries of one subscription that are in flight: received, and neither settled nor lost. */
import { Broker, type BrokerError, type Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Machine } from "../world/Machine.ts"
import { errorOf, type Requests } from "./Requests.ts"
import { isExpired, longest, receiptOf } from "./Settling.ts"

/** Deliveries from their receipt to their end. */
export interface Deliveries {
  readonly size: () => number
  /** Those that are not being settled. */
  readonly unsettled: () => ReadonlyArray<Delivery.Delivery>
  readonly began: (delivery: Delivery.Delivery) => void
  readonly ended: (delivery: Delivery.Delivery) => void
  /** Renews leases, and returns those that are lost. The next call shows any other failure. */
  readonly extend: Broker.Subscription["extend"]
}

interface Dependencies {
  readonly machine: Machine
  readonly requests: Requests
  /** Milliseconds. */
  readonly lease: number
  /** Called when a delivery has ended. */
  readonly onEnd: () => void
}

/** Nothing is in flight yet. */
export const make = ({ lease, machine, onEnd, requests }: Dependencies): Deliveries => {
  const deliveries = new Set<Delivery.Delivery>()
  let isWatching = false

  const ended = (delivery: Delivery.Delivery): void => {
    if (deliveries.delete(delivery)) onEnd()
  }

  /** Ends deliveries whose lease has ended, because the core abandons some of them silently. */
  const watch = (): void => {
    if (isWatching || deliveries.size === 0) return
    isWatching = true
    machine.after(lease / 3, () => {
      isWatching = false
      const now = machine.monotonic()
      for (const each of deliveries) if (isExpired(receiptOf(each), now)) ended(each)
      watch()
    })
  }

  const lost = (delivery: Delivery.Delivery, error: BrokerError.BrokerError): Broker.SettleFailure => {
    ended(delivery)
    return { delivery, error, fate: "lost" }
  }

  const extend = Effect.fnUntraced(function* (all: ReadonlyArray<Delivery.Delivery>) {
    const askedAt = machine.monotonic()
    const failures: Array<Broker.SettleFailure> = []
    const extensions: Array<{ readonly delivery: Delivery.Delivery; readonly seconds: number }> = []
    for (const delivery of all) {
      const { leaseEnds, receivedAt } = receiptOf(delivery)
      const seconds = Math.floor(Math.min(lease, longest - (askedAt - receivedAt)) / 1000)
      if (isExpired(receiptOf(delivery), askedAt)) {
        failures.push(lost(delivery, errorOf("extend", "LeaseLost", "its lease had ended")))
      } else if (askedAt + seconds * 1000 > leaseEnds) extensions.push({ delivery, seconds })
    }
    const results = yield* requests.hide(
      extensions.map(({ delivery, seconds }) => ({ handle: receiptOf(delivery).number, seconds, isBack: false }))
    )
    for (const [index, { delivery, seconds }] of extensions.entries()) {
      const error = results[index]
      const receipt = receiptOf(delivery)
      if (error === undefined) receipt.leaseEnds = askedAt + seconds * 1000
      else if (error.reason === "LeaseLost") failures.push(lost(delivery, error))
      else receipt.isUncertain ||= Broker.fateOf(error) === "unknown"
    }
    return failures
  })

  return {
    size: () => deliveries.size,
    unsettled: () => [...deliveries].filter((delivery) => !receiptOf(delivery).isSettling),
    began: (delivery) => {
      deliveries.add(delivery)
      watch()
    },
    ended,
    extend
  }
}
