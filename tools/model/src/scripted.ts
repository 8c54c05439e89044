/** A broker that does nothing automatically: a trace delivers, answers calls and cuts the connection. */
import { Broker, BrokerError, type Delivery, type Settlement } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/** It honours everything. Deliveries end with their connection, and with a lease that no pause of a trace outlasts. */
const capabilities: Broker.Service["capabilities"] = {
  broker: "scripted",
  retryDelay: { native: 86_400_000, beyond: undefined },
  sendDelay: { native: 86_400_000, beyond: undefined },
  delayResolution: 1,
  durableDelays: true,
  durableMessages: true,
  uncountedRelease: true,
  headers: true,
  historyOnRetry: true,
  maxBodySize: Number.POSITIVE_INFINITY,
  connectionBound: true,
  lease: { duration: 1e9, max: Number.POSITIVE_INFINITY },
  ordered: true,
  settleBatch: 1,
  settleWait: 0,
  counts: { ready: true, inFlight: true, delayed: true },
  exactCounts: true,
  uncountedBrowse: true
}

const reasons = {
  lost: "LeaseLost",
  committed: "LeaseLost",
  transient: "Throttled",
  unknown: "Timeout",
  rejected: "BodyTooLarge"
} as const

/** How a call fails. */
export interface Fault {
  readonly fate: Broker.Fate
  readonly smaller?: boolean
}

const errorOf = ({ fate }: Fault): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "scripted",
    operation: "settle",
    reason: reasons[fate],
    detail: "as the trace says"
  })

/** A settlement that waits for its answer. */
interface Call {
  readonly delivery: Delivery.Delivery
  readonly settlement: Settlement.Settlement
  readonly answer: Deferred.Deferred<Fault | undefined>
}

const describe = (settlement: Settlement.Settlement): string => {
  const later = "delay" in settlement && settlement.delay > 0 ? " later" : ""
  const cut = "cut" in settlement && settlement.cut !== undefined ? ` without ${settlement.cut}` : ""
  return `${settlement._tag}${later}${cut}`
}

/** Receipts are the names of copies. */
const nameOf = ({ receipt }: Delivery.Delivery): string => String(receipt)

export const make = () => {
  const log: Array<string> = []
  const calls = new Map<string, Call>()
  let publish: Deferred.Deferred<void, BrokerError.BrokerError> | undefined
  let subscriber: Broker.SubscribeOptions | undefined
  let hasEnded = false

  const settle = ({
    delivery,
    settlement
  }: Broker.SettleRequest): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> => {
    if (hasEnded) return Effect.succeed([])
    const answer = Deferred.makeUnsafe<Fault | undefined>()
    log.push(`${nameOf(delivery)} ${describe(settlement)}`)
    calls.set(nameOf(delivery), { delivery, settlement, answer })
    return Effect.map(Deferred.await(answer), (fault) =>
      fault === undefined ? [] : [{ delivery, error: errorOf(fault), ...fault }]
    )
  }

  const service: Broker.Service = {
    capabilities,
    connection: () => ({ state: "up", since: 0 }),
    publish: ([message]) => {
      log.push(`${message?.headers["copy"]} publishes`)
      publish = Deferred.makeUnsafe()
      return Deferred.await(publish)
    },
    subscribe: (options) =>
      Effect.sync(() => {
        subscriber = options
        return {
          credit: () => {},
          settle: (requests) =>
            Effect.map(Effect.all(requests.map(settle), { concurrency: "unbounded" }), (failures) => failures.flat()),
          extend: () => Effect.succeed([]),
          identify: nameOf
        }
      }),
    admin: {
      counts: () => Effect.succeed({ ready: 1, inFlight: 0, delayed: 0 }),
      browse: () => Effect.die("nothing browses here"),
      purge: () => Effect.succeed(0)
    }
  }

  return {
    service,
    /** Takes what the engine has done since the last call. */
    take: () => log.splice(0),
    /** The number of things that the engine has done since. */
    done: () => log.length,
    note: (line: string): void => void log.push(line),
    deliver: (delivery: Delivery.Delivery): void => subscriber!.onDelivery(delivery),
    reconnect: (): void => subscriber!.onReconnect(),
    /** The settlement of a copy that waits for its answer. */
    call: (copy: string): Call | undefined => calls.get(copy),
    answer: (copy: string, fault: Fault | undefined): void => {
      const call = calls.get(copy)!
      calls.delete(copy)
      Deferred.doneUnsafe(call.answer, Effect.succeed(fault))
    },
    answerPublish: (fault: Fault | undefined): void => {
      Deferred.doneUnsafe(publish!, fault === undefined ? Effect.void : Effect.fail(errorOf(fault)))
    },
    /** Answers all waiting settlements, so the engine can close. */
    end: (): void => {
      hasEnded = true
      for (const { answer } of calls.values()) Deferred.doneUnsafe(answer, Effect.succeed(undefined))
    }
  }
}
