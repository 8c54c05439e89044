/**
 * Moves messages out of a delay that is to be removed, to where they belong, with what is left of their delay. What is
 * left is reckoned by `notBefore` and the clock of this process; without that, by the whole delay of the queue, so that a
 * message comes late rather than early.
 */
import { BoundedMap, type BrokerError, Delay, Metadata } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type { Incoming } from "../client.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import type { Declarer } from "../declare/declare.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { Item } from "../publish/routes.ts"
import type { Sender } from "../publish/sender.ts"
import { toPublication } from "../publish/toPublication.ts"
import { identify } from "../consume/identity.ts"
import * as Wire from "../wire.ts"
import type { QueueInfo } from "./management.ts"

/** The connections and plans of the operator. */
export interface Dependencies {
  readonly sender: Pick<Sender, "sendEach">
  readonly publisher: Pick<Publisher, "submit">
  readonly declarer: Pick<Declarer, "onChannel">
  readonly plan: (queue: string) => Effect.Effect<RabbitMqPlan.Plan, BrokerError.BrokerError>
  readonly serverVersion: string
  /** The exchange for messages whose queue is gone. */
  readonly undelivered: string
  /** The start of the adapter's names. */
  readonly own: string
  readonly uniqueName: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/**
 * Moves messages, and answers the error of each, in order; `undefined` for one that is confirmed where it belongs. With
 * `isLast` they have no queue any more to stay in: what is refused goes to the undelivered messages.
 */
export type Move = (
  messages: ReadonlyArray<Incoming>,
  from: string,
  isLast?: boolean
) => Effect.Effect<ReadonlyArray<BrokerError.BrokerError | undefined>, BrokerError.BrokerError>

/** Moved copies that are remembered. */
const movedLimit = 100_000

const ttlOf = (queue: QueueInfo | undefined): number => {
  const ttl = queue?.arguments["x-message-ttl"]
  return typeof ttl === "number" ? ttl : 0
}

/**
 * Moves the messages of `stale` queues. `sources` names the stale queue behind an exchange, for what it was to get.
 *
 * Long, because the questions that a message is asked share what is known of the queues.
 */
export const make = (
  env: Dependencies,
  stale: ReadonlyArray<QueueInfo>,
  sources: ReadonlyMap<string, string>
): Move => {
  const queues = new Map(stale.map((queue) => [queue.name, queue]))
  /** Copies that were in two queues, while an exchange led to both, are moved once. */
  const moved = BoundedMap.make<string>(movedLimit)
  const source = { type: "unknown", serverVersion: env.serverVersion, keepsNotBefore: true, now: env.now } as const

  /** The queue behind all stale ones: each may lead on by another routing key. */
  const targetOf = (name: string): string => {
    let target = name
    for (let hop = 0; hop < queues.size; hop++) {
      const key = queues.get(target)?.arguments["x-dead-letter-routing-key"]
      if (typeof key === "string") target = key
    }
    return target
  }

  const restOf = (metadata: Metadata.Metadata, properties: Incoming["properties"], at: string): number => {
    if (metadata.notBefore !== 0) return Metadata.wait(metadata, env.now(), Number.POSITIVE_INFINITY)
    return Math.min(Delay.max, ttlOf(queues.get(at)) || Math.ceil(Number(properties.expiration ?? 0)) || 0)
  }

  const exists = (queue: string) =>
    env.declarer
      .onChannel("clean", queue, (channel) => channel.checkQueue(queue))
      .pipe(
        Effect.as(true),
        Effect.catchIf(
          ({ reason }) => reason === "QueueMissing",
          () => Effect.succeed(false)
        )
      )

  /** Where the server itself would have put it: nobody makes a queue for it that is gone. */
  const putAside = ({ message, original }: Omit<Item, "plan">): Effect.Effect<BrokerError.BrokerError | undefined> =>
    Effect.callback((resume) => {
      const route = { exchange: env.undelivered, routingKey: message.queue, headers: {}, expiration: undefined }
      const publication = toPublication(message, route, { copy: env.uniqueName(), own: env.own }, original)
      env.publisher.submit(publication, (error) => resume(Effect.succeed(error)))
    })

  return (messages, from, isLast = false) =>
    Effect.gen(function* () {
      const known = new Map<string, RabbitMqPlan.Plan | undefined>()
      const items: Array<
        (Omit<Item, "plan"> & { plan: RabbitMqPlan.Plan | undefined; name: string | undefined }) | undefined
      > = []
      for (const incoming of messages) {
        const { fields, properties } = incoming
        const name = identify(incoming.content, properties)
        const before = name === undefined ? undefined : moved.get(name)
        if (before !== undefined && before !== from) {
          items.push(undefined)
          continue
        }
        const { body, headers, metadata } = toDelivery(incoming, source)
        const at = queues.has(from) ? from : (sources.get(fields.exchange) ?? from)
        const own = targetOf(from)
        const queue = own === from ? targetOf(fields.routingKey) : own
        if (!known.has(queue)) known.set(queue, (yield* exists(queue)) ? yield* env.plan(queue) : undefined)
        const delay = restOf(metadata, properties, at)
        const message = { queue, body, headers, delay, metadata }
        items.push({ message, original: Wire.propertiesOf(incoming), plan: known.get(queue), name })
      }
      const sent = items.flatMap((item) =>
        item?.plan === undefined ? [] : [{ message: item.message, original: item.original, plan: item.plan }]
      )
      const outcomes = [...(yield* env.sender.sendEach(sent))]
      const errors: Array<BrokerError.BrokerError | undefined> = []
      for (const item of items) {
        const refused = item?.plan === undefined ? undefined : outcomes.shift()
        const isAside = item !== undefined && (item.plan === undefined || (refused !== undefined && isLast))
        const error = isAside ? yield* putAside(item) : refused
        if (error === undefined && item?.name !== undefined) moved.set(item.name, from)
        errors.push(error)
      }
      return errors
    })
}
