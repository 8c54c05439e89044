/**
 * A broker with message groups: it delivers nothing of a group behind a message that is in flight or waits for its delay,
 * and counts each delivery. With a lease, a message that is in flight too long is delivered again.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Timers from "../../src/runtime/Timers.ts"
import {
  Broker,
  type Service,
  type SettleFailure,
  type SettleRequest,
  type SubscribeOptions
} from "../../src/port/Broker.ts"
import { BrokerError } from "../../src/port/BrokerError.ts"
import type { Delivery } from "../../src/message/Delivery.ts"
import { delivery } from "../items.ts"
import { plain } from "../scripted.ts"

interface Message {
  readonly id: string
  readonly group: string
  deliveries: number
  /** The receipt by which it is in flight. */
  receipt: string | undefined
  /** When its lease ends, in milliseconds. */
  until: number
  /** It waits for a delay. */
  isDelayed: boolean
}

/** A lease in milliseconds, and which settlements and extensions are not done, and answered as if it had ended. */
export interface Lease {
  readonly duration: number
  readonly refuses: (call: "settle" | "extend", now: number) => boolean
}

/** Ids begin with the name of their group. `perGroup` messages of a group are delivered together at most. */
export const make = (ids: ReadonlyArray<string>, perGroup: number, lease?: Lease) => {
  let queue = ids.map(
    (id): Message => ({ id, group: id[0]!, deliveries: 0, receipt: undefined, until: 0, isDelayed: false })
  )
  const letters: Array<string> = []
  const acked: Array<string> = []
  let timers: Timers.Timers | undefined
  let subscriber: SubscribeOptions | undefined
  let credit = 0
  let receipts = 0

  const isOut = ({ isDelayed, receipt }: Message): boolean => receipt !== undefined || isDelayed

  const pump = (): void => {
    for (const group of new Set(queue.map((each) => each.group))) {
      const mine = queue.filter((each) => each.group === group)
      const end = mine.findIndex(isOut)
      if (end >= 0 && mine.slice(end).some(isOut)) continue
      const free = credit - queue.filter(({ receipt }) => receipt !== undefined).length
      for (const message of mine.slice(0, Math.min(perGroup, free))) {
        message.receipt = String(++receipts)
        hold(message, message.receipt)
        const attempts = ++message.deliveries
        subscriber!.onDelivery(delivery(message.id, { attempts, group, receipt: message.receipt }))
      }
    }
  }

  /** Begins the lease of a receipt anew. */
  const hold = (message: Message, receipt: string): void => {
    if (lease === undefined) return
    message.until = timers!.now() + lease.duration
    timers!.after(lease.duration, () => {
      if (message.receipt !== receipt || message.until > timers!.now()) return
      message.receipt = undefined
      pump()
    })
  }

  /** The message whose receipt it is; `undefined` where the lease has ended, or is said to have. */
  const find = (call: "settle" | "extend", { receipt }: Delivery): Message | undefined =>
    lease?.refuses(call, timers!.now()) === true ? undefined : queue.find((each) => each.receipt === receipt)

  const gone = (lost: Delivery): SettleFailure => ({
    delivery: lost,
    error: new BrokerError({ broker: "fifo", operation: "settle", reason: "LeaseLost", detail: "as the test asks" }),
    fate: "lost"
  })

  const settle = ({ delivery: settled, settlement }: SettleRequest): ReadonlyArray<SettleFailure> => {
    const message = find("settle", settled)
    if (message === undefined) return [gone(settled)]
    const { _tag } = settlement
    message.receipt = undefined
    if (_tag === "Ack") acked.push(message.id)
    if (_tag === "DeadLetter") letters.push(message.id)
    if (_tag !== "Retry" && _tag !== "Release") queue = queue.filter((each) => each !== message)
    else if (settlement.delay > 0) {
      message.isDelayed = true
      timers!.after(settlement.delay, () => {
        message.isDelayed = false
        pump()
      })
    }
    return []
  }

  const extend = (extended: Delivery): ReadonlyArray<SettleFailure> => {
    const message = find("extend", extended)
    if (message === undefined) return [gone(extended)]
    hold(message, message.receipt!)
    return []
  }

  const broker: Service = {
    capabilities: {
      ...plain,
      connectionBound: false,
      lease: lease && { duration: lease.duration, max: 1e9 },
      uncountedRelease: false,
      ordered: false,
      settleBatch: 10
    },
    connection: () => ({ state: "up", since: 0 }),
    publish: () => Effect.void,
    subscribe: (options) =>
      Effect.gen(function* () {
        timers = yield* Timers.make
        subscriber = options
        return {
          credit: (limit) => {
            credit = limit
            pump()
          },
          settle: (requests) =>
            Effect.map(Effect.sleep(1), () => {
              const failures = requests.flatMap(settle)
              pump()
              return failures
            }),
          extend: (deliveries) => Effect.sync(() => deliveries.flatMap(extend)),
          identify: ({ metadata }: Delivery) => metadata.id
        }
      }),
    admin: {
      counts: () => Effect.succeed({ ready: queue.length, inFlight: 0, delayed: 0 }),
      browse: () => Effect.die("nothing browses here"),
      purge: () => Effect.succeed(0)
    }
  }
  return {
    layer: Layer.merge(Layer.succeed(Broker, broker), Layer.succeed(References.MinimumLogLevel, "None")),
    /** What is in the queue. */
    left: () => queue.map(({ id }) => id),
    acked,
    letters
  }
}
