/** What arrives: turned away before any handler sees it, or decoded and handed on to its batch. */
import type { Codec } from "../../message/Codec.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { RetryPolicy } from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Gate } from "./gate.ts"
import * as Intake from "./admission.ts"
import type { Item } from "./item.ts"
import type { Outbox } from "./inFlight.ts"
import type { Reporter } from "./reporter.ts"

export interface Arrivals {
  /** `now` is in milliseconds since the epoch. */
  readonly onDelivery: (delivery: Delivery, now: number) => void
  /** The connection that delivered these is another one now: what is still being decoded is delivered again. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
  /** Messages whose codec takes its time. */
  readonly decoding: () => number
}

export const make = (env: {
  readonly queue: string
  readonly codec: Codec<any>
  readonly retry: RetryPolicy
  readonly outbox: Outbox
  readonly brokerGate: Gate
  readonly reporter: Reporter
  /** A delivery may have been on its way when the credit was taken away. */
  readonly isWanted: () => boolean
  readonly onDecoded: (item: Item) => void
}): Arrivals => {
  const { brokerGate, codec, isWanted, outbox, queue, retry } = env
  const decoding = new Set<Item>()
  const lost = new Set<Item>()

  const turnAway = (item: Item, settlement: Settlement.Settlement): void => {
    // No handler sees it, but the broker is probed with its settlement: else one that fails would go round at once.
    brokerGate.signal({ _tag: "Started", id: item.key })
    outbox.settle(item, settlement)
    outbox.flush()
  }

  const refusal = (delivery: Delivery, now: number): Settlement.Settlement | undefined =>
    isWanted()
      ? Intake.turnAway(delivery, { policy: retry, queue, acked: outbox.isAcked(delivery), now })
      : Settlement.Release()

  const hand = (item: Item, body: unknown): void => {
    item.body = body
    env.onDecoded(item)
  }

  const refuse = (item: Item, error: unknown): void => turnAway(item, Intake.undecodable(retry, queue, error))

  const decode = (item: Item): void => {
    let body: unknown
    try {
      body = codec.decode(item.delivery.body, item.delivery.headers)
    } catch (error) {
      return refuse(item, error)
    }
    if (body instanceof Promise) wait(item, body)
    else hand(item, body)
  }

  const wait = (item: Item, body: Promise<unknown>): void => {
    decoding.add(item)
    /** What a lost connection delivered is delivered again. */
    const isOurs = (): boolean => {
      decoding.delete(item)
      const isLost = lost.delete(item)
      if (isLost) outbox.forget(item)
      return !isLost
    }
    body.then(
      (decoded) => {
        if (!isOurs()) return
        if (isWanted()) hand(item, decoded)
        else turnAway(item, Settlement.Release())
      },
      (error: unknown) => {
        if (isOurs()) refuse(item, error)
      }
    )
  }

  return {
    onDelivery: (delivery, now) => {
      env.reporter.received(delivery)
      const refused = refusal(delivery, now)
      // Ours from now on: while a codec takes its time, its lease is extended.
      const item = outbox.arrive(delivery)
      if (refused === undefined) decode(item)
      else turnAway(item, refused)
    },
    onReconnect: (isGone) => {
      for (const item of decoding) if (isGone(item.delivery)) lost.add(item)
    },
    decoding: () => decoding.size
  }
}
