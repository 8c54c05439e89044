/** A broker that forwards everything to another one, records it in order with its time, and fails on demand as brokers do. */
import type { Broker, BrokerError, Delivery } from "@requeue/core"
import type { Outgoing, Settlement, Trouble } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** One entry of a recording; `at` is in milliseconds since 1970. */
export type Entry =
  | { readonly _tag: "Credit"; readonly at: number; readonly queue: string; readonly limit: number }
  | { readonly _tag: "Delivered"; readonly at: number; readonly queue: string; readonly delivery: Delivery.Delivery }
  | { readonly _tag: "Reconnected"; readonly at: number; readonly queue: string }
  /** The core requested a settlement. */
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

type FaultOf<A> = (asked: A) => Omit<Broker.SettleFailure, "delivery"> | undefined

/** Failures to inject; a case sets and clears them. A call that fails here does not reach the broker. */
export interface Faults {
  /** Returns how a settlement fails, or `undefined` to let it pass. */
  settle: FaultOf<Broker.SettleRequest> | undefined
  /** Returns how the extension of a lease fails, or `undefined` to let it pass. */
  extend: FaultOf<Pick<Broker.SettleRequest, "delivery">> | undefined
  /** Returns what happens instead of a publish, or `undefined` to let it pass. */
  publish:
    | ((messages: ReadonlyArray<Outgoing.Outgoing>) => Effect.Effect<void, BrokerError.BrokerError> | undefined)
    | undefined
  /** Returns why the broker does not deliver the messages of a queue, or `undefined` to let the broker answer. */
  trouble: ((queue: string) => Trouble.Trouble | undefined) | undefined
}

/** A recorded broker. */
export interface Recording {
  /** The broker to use instead of the other one. */
  readonly broker: Broker.Service
  /** All entries so far, oldest first. */
  readonly log: ReadonlyArray<Entry>
  /** The failures to inject; none at first. */
  readonly faults: Faults
}

/** Forwards the requests that no failure affects, and returns all failures. */
const around = <A extends Pick<Broker.SettleRequest, "delivery">>(
  asked: ReadonlyArray<A>,
  faultOf: FaultOf<A> | undefined,
  pass: (passed: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> => {
  const failed = asked.flatMap((one) => {
    const fault = faultOf?.(one)
    return fault === undefined ? [] : [{ delivery: one.delivery, ...fault }]
  })
  const broken = new Set(failed.map(({ delivery }) => delivery))
  const passed = asked.filter(({ delivery }) => !broken.has(delivery))
  return Effect.map(passed.length === 0 ? Effect.succeed([]) : pass(passed), (failures) => [...failed, ...failures])
}

/** Makes a recorded broker of a broker. */
export const make = (broker: Broker.Service): Effect.Effect<Recording> =>
  Effect.map(Clock.Clock, (clock) => {
    const log: Array<Entry> = []
    const faults: Faults = { settle: undefined, extend: undefined, publish: undefined, trouble: undefined }
    const now = () => clock.currentTimeMillisUnsafe()

    const settle = (
      queue: string,
      requests: ReadonlyArray<Broker.SettleRequest>,
      pass: (requests: ReadonlyArray<Broker.SettleRequest>) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
    ): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
      Effect.suspend(() => {
        for (const request of requests) log.push({ _tag: "Settling", at: now(), queue, ...request })
        return Effect.map(around(requests, faults.settle, pass), (failures) => {
          const errors = new Map(failures.map(({ delivery, error }) => [delivery, error]))
          for (const request of requests) {
            log.push({ _tag: "Settled", at: now(), queue, ...request, error: errors.get(request.delivery) })
          }
          return failures
        })
      })

    const extend = (deliveries: ReadonlyArray<Delivery.Delivery>, pass: Broker.Subscription["extend"]) =>
      Effect.suspend(() =>
        around(
          deliveries.map((delivery) => ({ delivery })),
          faults.extend,
          (passed) => pass(passed.map(({ delivery }) => delivery))
        )
      )

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
              settle: (requests) => settle(options.queue, requests, subscription.settle),
              extend: (deliveries) => extend(deliveries, subscription.extend),
              trouble: () => faults.trouble?.(options.queue) ?? subscription.trouble?.()
            })
          )
      }
    }
  })
