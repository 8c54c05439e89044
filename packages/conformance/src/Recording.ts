/**
 * A broker that passes everything on to another one, records it in order and with its time, and fails on demand as brokers
 * do.
 */
import type { Broker, BrokerError, Delivery, Outgoing, Settlement } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** One entry of a recording; `at` is in milliseconds since 1970. */
export type Entry =
  | { readonly _tag: "Credit"; readonly at: number; readonly queue: string; readonly limit: number }
  | { readonly _tag: "Delivered"; readonly at: number; readonly queue: string; readonly delivery: Delivery.Delivery }
  | { readonly _tag: "Reconnected"; readonly at: number; readonly queue: string }
  /** The broker was asked for a settlement. */
  | Settling
  /** The broker answered a settlement. */
  | (Omit<Settling, "_tag"> & { readonly _tag: "Settled"; readonly error: BrokerError.BrokerError | undefined })
  | { readonly _tag: "Publishing"; readonly at: number; readonly messages: ReadonlyArray<Outgoing.Outgoing> }
  /** The broker confirmed the messages. */
  | { readonly _tag: "Published"; readonly at: number; readonly messages: ReadonlyArray<Outgoing.Outgoing> }

interface Settling {
  readonly _tag: "Settling"
  readonly at: number
  readonly queue: string
  readonly delivery: Delivery.Delivery
  readonly settlement: Settlement.Settlement
}

/** Failures to inject; a case sets and clears them. A call that fails here does not reach the broker. */
export interface Faults {
  /** Answers how a settlement fails, or `undefined` to let it pass. */
  settle: ((request: Broker.SettleRequest) => Omit<Broker.SettleFailure, "delivery"> | undefined) | undefined
  /** Answers what happens instead of a publish, or `undefined` to let it pass. */
  publish:
    | ((messages: ReadonlyArray<Outgoing.Outgoing>) => Effect.Effect<void, BrokerError.BrokerError> | undefined)
    | undefined
}

/** A recorded broker. */
export interface Recording {
  /** The broker to use in the other one's place. */
  readonly broker: Broker.Service
  /** All entries so far, oldest first. */
  readonly log: ReadonlyArray<Entry>
  /** None at first. */
  readonly faults: Faults
}

/** Makes a recorded broker of a broker. */
export const make = (broker: Broker.Service): Effect.Effect<Recording> =>
  Effect.map(Clock.Clock, (clock) => {
    const log: Array<Entry> = []
    const faults: Faults = { settle: undefined, publish: undefined }
    const now = () => clock.currentTimeMillisUnsafe()

    const settle = (
      queue: string,
      requests: ReadonlyArray<Broker.SettleRequest>,
      pass: (requests: ReadonlyArray<Broker.SettleRequest>) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
    ): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
      Effect.suspend(() => {
        for (const request of requests) log.push({ _tag: "Settling", at: now(), queue, ...request })
        const refused = requests.flatMap((request) => {
          const fault = faults.settle?.(request)
          return fault === undefined ? [] : [{ delivery: request.delivery, ...fault }]
        })
        const broken = new Set(refused.map(({ delivery }) => delivery))
        const passed = requests.filter(({ delivery }) => !broken.has(delivery))
        return Effect.map(passed.length === 0 ? Effect.succeed([]) : pass(passed), (failures) => {
          const errors = new Map([...refused, ...failures].map(({ delivery, error }) => [delivery, error]))
          for (const request of requests) {
            log.push({ _tag: "Settled", at: now(), queue, ...request, error: errors.get(request.delivery) })
          }
          return [...refused, ...failures]
        })
      })

    return {
      log,
      faults,
      broker: {
        ...broker,
        publish: (messages) =>
          Effect.suspend(() => {
            log.push({ _tag: "Publishing", at: now(), messages })
            const published = faults.publish?.(messages) ?? broker.publish(messages)
            return Effect.map(published, () => void log.push({ _tag: "Published", at: now(), messages }))
          }),
        subscribe: (options) =>
          Effect.map(
            broker.subscribe({
              ...options,
              onDelivery: (delivery) => {
                log.push({ _tag: "Delivered", at: now(), queue: options.queue, delivery })
                options.onDelivery(delivery)
              },
              onReconnect: (isGone) => {
                log.push({ _tag: "Reconnected", at: now(), queue: options.queue })
                options.onReconnect(isGone)
              }
            }),
            (subscription) => ({
              ...subscription,
              credit: (limit) => {
                log.push({ _tag: "Credit", at: now(), queue: options.queue, limit })
                subscription.credit(limit)
              },
              settle: (requests) => settle(options.queue, requests, subscription.settle)
            })
          )
      }
    }
  })
