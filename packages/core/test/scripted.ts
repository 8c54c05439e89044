/** A broker that does nothing by itself: a test delivers, decides how settlements end, and reads what was asked. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import {
  Broker,
  type Counts,
  type Fate,
  fateOf,
  type Service,
  type SettleRequest,
  type SubscribeOptions
} from "../src/port/Broker.ts"
import { BrokerError, type Reason } from "../src/port/BrokerError.ts"
import type { Capabilities } from "../src/port/Capabilities.ts"
import type { Trouble } from "../src/port/Trouble.ts"
import * as Delay from "../src/message/Delay.ts"
import type { Delivery } from "../src/message/Delivery.ts"
import { delivery } from "./items.ts"

/** A broker that honours everything and keeps nothing. */
export const plain: Capabilities = {
  broker: "scripted",
  retryDelay: { native: Delay.max, beyond: undefined },
  sendDelay: { native: Delay.max, beyond: undefined },
  delayResolution: 1,
  durableDelays: false,
  durableMessages: false,
  uncountedRelease: true,
  headers: true,
  historyOnRetry: true,
  maxBodySize: Number.POSITIVE_INFINITY,
  connectionBound: true,
  lease: undefined,
  ordered: true,
  settleBatch: 1,
  settleWait: 0,
  counts: { ready: true, inFlight: true, delayed: true },
  exactCounts: true,
  uncountedBrowse: true
}

/** A failure whose fate is not the usual one of its reason. */
interface SettleFault {
  readonly reason: Reason
  readonly fate: Fate
}

interface Faults {
  /** How a settlement fails; `undefined`: it does not. */
  settle: (request: SettleRequest) => Reason | SettleFault | undefined
  /** Whether a lease has ended when it is to be extended. */
  isOver: (delivery: Delivery) => boolean
  /** Whether the extension of a lease gets no answer. */
  isUnanswered: (delivery: Delivery) => boolean
  /** Milliseconds until a settlement is answered. */
  latency: number
  /** Milliseconds until an extension is answered. */
  extendLatency: number
  identify: (delivery: Delivery) => string | undefined
  copiesRetries: boolean
  /** What an ack in a transaction does, with the capability `transactions`. */
  ackWithin: (transaction: unknown) => Effect.Effect<ReadonlyArray<Delivery>, BrokerError>
}

/** The connection and the counts that the broker reports. */
interface Says {
  readonly connection?: Service["connection"]
  readonly counts?: Effect.Effect<Counts, BrokerError>
  readonly trouble?: () => Trouble | undefined
}

export const make = (capabilities: Partial<Capabilities> = {}, says: Says = {}) => {
  let log: Array<string> = []
  let subscriber: SubscribeOptions | undefined
  const faults: Faults = {
    settle: () => undefined,
    isOver: () => false,
    isUnanswered: () => false,
    latency: 0,
    extendLatency: 0,
    // Each receipt of a test is a copy's own.
    identify: ({ receipt }) => receipt as string,
    copiesRetries: false,
    ackWithin: () => Effect.succeed([])
  }

  const errorOf = (operation: string, reason: Reason) =>
    new BrokerError({ broker: "scripted", operation, reason, detail: "as the test asks" })

  const settle = (requests: ReadonlyArray<SettleRequest>) => {
    log.push(requests.map(({ delivery, settlement }) => `${delivery.metadata.id}:${settlement._tag}`).join(" "))
    return requests.flatMap((request) => {
      const fault = faults.settle(request)
      if (fault === undefined) return []
      const reason = typeof fault === "string" ? fault : fault.reason
      const error = errorOf("settle", reason)
      const fate = typeof fault === "string" ? fateOf(error) : fault.fate
      return [{ delivery: request.delivery, error, fate }]
    })
  }
  const broker: Service = {
    capabilities: { ...plain, ...capabilities },
    connection: says.connection ?? (() => ({ state: "up", since: 0 })),
    publish: () => Effect.void,
    subscribe: (options) =>
      Effect.sync(() => {
        subscriber = options
        return {
          credit: (limit) => void log.push(`credit ${limit}`),
          settle: (requests) => {
            const { latency } = faults
            const settled = Effect.sync(() => settle(requests))
            return latency > 0 ? Effect.andThen(Effect.sleep(latency), settled) : settled
          },
          extend: (deliveries) => {
            log.push(`extend ${deliveries.map(({ metadata }) => metadata.id).join(" ")}`)
            const { extendLatency } = faults
            const extended = Effect.sync(() => {
              return deliveries.flatMap((each) => {
                const reason = faults.isUnanswered(each) ? "Timeout" : faults.isOver(each) ? "LeaseLost" : undefined
                if (reason === undefined) return []
                const error = errorOf("extend", reason)
                return [{ delivery: each, error, fate: fateOf(error) }]
              })
            })
            return extendLatency > 0 ? Effect.andThen(Effect.sleep(extendLatency), extended) : extended
          },
          ackWithin:
            capabilities.transactions === true
              ? (transaction, deliveries) => {
                  log.push(`within ${deliveries.map(({ metadata }) => metadata.id).join(" ")}`)
                  return faults.ackWithin(transaction)
                }
              : undefined,
          identify: (delivery) => faults.identify(delivery),
          copiesRetries: faults.copiesRetries,
          trouble: says.trouble
        }
      }),
    admin: {
      counts: () => says.counts ?? Effect.succeed({ ready: 0, inFlight: 0, delayed: 0 }),
      browse: () => Effect.die("nothing browses here"),
      purge: () => Effect.succeed(0)
    }
  }
  return {
    layer: Layer.merge(Layer.succeed(Broker, broker), Layer.succeed(References.MinimumLogLevel, "None")),
    faults,
    errorOf,
    deliver: (id: string, more: Partial<Delivery> = {}) => subscriber!.onDelivery(delivery(id, more)),
    reconnect: (isGone?: (delivery: Delivery) => boolean) => subscriber!.onReconnect(isGone),
    /** The calls that the broker got since the last `take`, in order. */
    take: () => {
      const taken = log
      log = []
      return taken
    }
  }
}
