/**
 * A broker that passes everything on to another one and writes down what it saw, in order, with the time of each entry;
 * and that fails on demand, as brokers do.
 */
import type { Broker, BrokerError, Delivery, Outgoing, Settlement } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** `at` is in milliseconds since the epoch. */
export type Entry =
  | { readonly _tag: "Credit"; readonly at: number; readonly queue: string; readonly limit: number }
  | { readonly _tag: "Delivered"; readonly at: number; readonly queue: string; readonly delivery: Delivery.Delivery }
  | { readonly _tag: "Reconnected"; readonly at: number; readonly queue: string }
  /** A settlement was asked of the broker. */
  | Settling
  /** The broker's answer to a settlement. */
  | (Omit<Settling, "_tag"> & { readonly _tag: "Settled"; readonly error: BrokerError.BrokerError | undefined })
  | { readonly _tag: "Publishing"; readonly at: number; readonly messages: ReadonlyArray<Outgoing.Outgoing> }
  /** The broker has confirmed them. */
  | { readonly _tag: "Published"; readonly at: number; readonly messages: ReadonlyArray<Outgoing.Outgoing> }

interface Settling {
  readonly _tag: "Settling"
  readonly at: number
  readonly queue: string
  readonly delivery: Delivery.Delivery
  readonly settlement: Settlement.Settlement
}

/** Failures to inject; a case sets and clears them. What fails here does not reach the broker. */
export interface Faults {
  settle: ((request: Broker.SettleRequest) => BrokerError.BrokerError | undefined) | undefined
  /** Answers `undefined` to let a publish pass. */
  publish:
    | ((messages: ReadonlyArray<Outgoing.Outgoing>) => Effect.Effect<void, BrokerError.BrokerError> | undefined)
    | undefined
}

export interface Recording {
  readonly broker: Broker.Service
  readonly log: ReadonlyArray<Entry>
  readonly faults: Faults
}

/** Wraps a broker. */
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
          const error = faults.settle?.(request)
          return error === undefined ? [] : [{ delivery: request.delivery, error }]
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
              credit: (limit) => {
                log.push({ _tag: "Credit", at: now(), queue: options.queue, limit })
                subscription.credit(limit)
              },
              settle: (requests) => settle(options.queue, requests, subscription.settle),
              extend: subscription.extend
            })
          )
      }
    }
  })
