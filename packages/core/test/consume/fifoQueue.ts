/**
 * A broker with message groups: it delivers nothing of a group behind a message that is in flight or waits for its delay,
 * and counts each delivery.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { Broker, type Service, type SettleRequest, type SubscribeOptions } from "../../src/port/Broker.ts"
import type { Delivery } from "../../src/message/Delivery.ts"
import { delivery } from "../items.ts"
import { plain } from "../scripted.ts"

interface Message {
  readonly id: string
  readonly group: string
  deliveries: number
  /** The receipt by which it is in flight. */
  receipt: string | undefined
  /** It waits for a delay. */
  isDelayed: boolean
}

/** Ids begin with the name of their group. `perGroup` messages of a group are delivered together at most. */
export const make = (ids: ReadonlyArray<string>, perGroup: number) => {
  let queue = ids.map((id): Message => ({ id, group: id[0]!, deliveries: 0, receipt: undefined, isDelayed: false }))
  const letters: Array<string> = []
  const acked: Array<string> = []
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
        const attempts = ++message.deliveries
        subscriber!.onDelivery(delivery(message.id, { attempts, group, receipt: message.receipt }))
      }
    }
  }

  const settle = ({ delivery: { receipt }, settlement }: SettleRequest): Effect.Effect<void> => {
    const message = queue.find((each) => each.receipt === receipt)!
    const { _tag } = settlement
    message.receipt = undefined
    if (_tag === "Ack") acked.push(message.id)
    if (_tag === "DeadLetter") letters.push(message.id)
    if (_tag !== "Retry" && _tag !== "Release") queue = queue.filter((each) => each !== message)
    else if (settlement.delay > 0) {
      message.isDelayed = true
      const wait = Effect.sleep(settlement.delay)
      return Effect.asVoid(
        Effect.forkDetach(
          Effect.andThen(
            wait,
            Effect.sync(() => ((message.isDelayed = false), pump()))
          )
        )
      )
    }
    return Effect.void
  }

  const broker: Service = {
    capabilities: { ...plain, connectionBound: false, uncountedRelease: false, ordered: false, settleBatch: 10 },
    connection: () => ({ state: "up", since: 0 }),
    publish: () => Effect.void,
    subscribe: (options) =>
      Effect.sync(() => {
        subscriber = options
        return {
          credit: (limit) => {
            credit = limit
            pump()
          },
          settle: (requests) =>
            Effect.gen(function* () {
              yield* Effect.sleep(1)
              yield* Effect.forEach(requests, settle, { discard: true })
              pump()
              return []
            }),
          extend: () => Effect.succeed([]),
          identify: ({ metadata }: Delivery) => metadata.id
        }
      }),
    admin: {
      counts: () => Effect.succeed({ ready: queue.length, inFlight: 0, delayed: 0 }),
      peek: () => Effect.succeed([]),
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
