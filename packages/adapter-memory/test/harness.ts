/** A hand-driven consumer and plain messages, for tests below the core. */
import { type Broker, type Delivery, RetryPolicy } from "@requeue/core"
import { Outgoing, type Settlement } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export const bytes = (text: string): Uint8Array => encoder.encode(text)

export const text = (delivery: Delivery.Delivery): string => decoder.decode(delivery.body)

export const reasons = (failures: ReadonlyArray<Broker.SettleFailure>): ReadonlyArray<string> =>
  failures.map(({ error }) => error.reason)

/** Publishes texts to a queue, in order; each is its message's id as well. */
export const send = (broker: Broker.Service, queue: string, texts: ReadonlyArray<string>, delay = 0) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    broker.publish(texts.map((id) => Outgoing.make({ queue, id, body: bytes(id), headers: {}, delay }, now)))
  )

export interface Probe extends Broker.Subscription {
  /** What has been delivered and not yet been taken with `next`. */
  readonly inbox: Array<Delivery.Delivery>
  readonly next: () => Delivery.Delivery
  readonly settleOne: (
    delivery: Delivery.Delivery,
    settlement: Settlement.Settlement
  ) => ReturnType<Broker.Subscription["settle"]>
  readonly reconnects: () => number
}

/** Subscribes with a credit and gathers what comes. */
export const probe = (
  broker: Broker.Service,
  queue: string,
  credit = 0,
  onDelivery: (delivery: Delivery.Delivery) => void = () => {}
): Effect.Effect<Probe, never, Scope.Scope> =>
  Effect.gen(function* () {
    const inbox: Array<Delivery.Delivery> = []
    let reconnects = 0
    const subscription = yield* broker.subscribe({
      queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [`${queue}.dlq`],
      onDelivery: (delivery) => {
        inbox.push(delivery)
        onDelivery(delivery)
      },
      onReconnect: () => {
        reconnects++
      }
    })
    subscription.credit(credit)
    return {
      ...subscription,
      inbox,
      next: () => {
        const delivery = inbox.shift()
        if (delivery === undefined) throw new Error("nothing was delivered")
        return delivery
      },
      settleOne: (delivery: Delivery.Delivery, settlement: Settlement.Settlement) =>
        subscription.settle([{ delivery, settlement }]),
      reconnects: () => reconnects
    }
  }).pipe(Effect.orDie)
