/** Takes deliveries in: settles those that no handler may see, decodes the others and hands them on to their batch. */
import type { Codec } from "../../message/Codec.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Acknowledgement from "../../policy/Acknowledgement.ts"
import * as Failure from "../../policy/Failure.ts"
import type { RetryPolicy } from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"
import * as Admission from "./admission.ts"
import * as Decoding from "./decoding.ts"
import type { Gate } from "./gate.ts"
import type { InFlight } from "./inFlight.ts"
import type { Item } from "./item.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"

export interface Intake {
  /** `now` is in milliseconds since the epoch. */
  readonly onDelivery: (delivery: Delivery, now: number) => void
  /** Drops bodies that are still being decoded, where the delivery went with its connection: it is delivered again. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
  /** Number of deliveries whose bodies are being decoded by a codec that returned a promise. */
  readonly decoding: () => number
}

/** A codec of any body type, as far as a consumer needs it. */
export type Decoder = Pick<Codec<unknown>, "decode">

export interface Dependencies extends Pick<Runtime, "timers" | "wallClock"> {
  readonly queue: string
  readonly codec: Decoder
  readonly retry: RetryPolicy
  readonly inFlight: InFlight
  readonly brokerGate: Gate
  readonly reporter: Reporter
  /** Whether handlers still take messages. A delivery may have been on its way when the credit was taken away. */
  readonly isWanted: () => boolean
  readonly onDecoded: (item: Item) => void
}

export const make = (dependencies: Dependencies): Intake => {
  const { brokerGate, codec, inFlight, isWanted, onDecoded, queue, reporter, retry, timers, wallClock } = dependencies
  const decoding = Decoding.make(timers, inFlight.forget)

  const refuse = (item: Item, settlement: Settlement.Settlement): void => {
    // No handler probes the broker with this delivery, so its settlement must: else one that fails would go round at
    // once.
    brokerGate.signal({ _tag: "Started", id: item.key })
    inFlight.settle(item, settlement)
    inFlight.flush()
  }

  const refuseUndecodable = (item: Item, error: unknown): void =>
    refuse(item, Admission.undecodable(retry, queue, error))

  const accept = (item: Item, body: unknown): void => {
    item.body = body
    onDecoded(item)
  }

  const decode = (item: Item): void => {
    let body: unknown
    let promise: Promise<unknown> | undefined
    try {
      body = codec.decode(item.delivery.body, item.delivery.headers)
      // `resolve` makes a promise of its own of one that has another `then`.
      if (body instanceof Promise) promise = Promise.resolve(body)
    } catch (error) {
      return refuseUndecodable(item, error)
    }
    if (promise === undefined) return accept(item, body)
    decoding.wait(item, promise, {
      decoded: (decoded) => (isWanted() ? accept(item, decoded) : refuse(item, Settlement.Release())),
      failed: (error) => refuseUndecodable(item, error),
      late: () => fail(item)
    })
  }

  /** Nobody knows whether the body can be decoded, so that this is no dead letter yet. */
  const fail = (item: Item): void => {
    const failure = Failure.make(new Failure.DecodeTimeout({ timeout: Decoding.timeout }), wallClock())
    brokerGate.signal({ _tag: "Started", id: item.key })
    reporter.failed(item.delivery, failure, false)
    inFlight.conclude(item, Acknowledgement.byOutcome("failure"), failure)
    inFlight.flush()
  }

  return {
    onDelivery: (delivery, now) => {
      reporter.received(delivery)
      const refusal = isWanted()
        ? Admission.refusal(delivery, { policy: retry, queue, acked: inFlight.isAcked(delivery), now })
        : Settlement.Release()
      // In flight from now on: its lease is extended while its codec works.
      const item = inFlight.add(delivery)
      if (refusal === undefined) decode(item)
      else refuse(item, refusal)
    },
    onReconnect: decoding.onReconnect,
    decoding: decoding.size
  }
}
