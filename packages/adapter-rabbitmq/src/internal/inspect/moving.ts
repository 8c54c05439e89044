/**
 * Moves messages out of a delay queue to where they belong, with the rest of their delay. The rest is computed from
 * `notBefore` and the clock of this process. Without `notBefore` it is the whole delay of the queue, so a message is late
 * rather than early.
 */
import { BoundedMap, type BrokerError, Delay, Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Incoming } from "../client.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Names from "../names.ts"
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
  /** The exchange for messages whose queue was deleted. */
  readonly undelivered: string
  readonly settings: Pick<Settings, "names" | "prefix">
  readonly uniqueName: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/**
 * Moves messages, and returns the error of each, in order; `undefined` once the copy is confirmed. With `isLast` their queue
 * is deleted: a refused message goes to the undelivered messages.
 */
export type Move = (
  messages: ReadonlyArray<Incoming>,
  from: string,
  isLast?: boolean
) => Effect.Effect<ReadonlyArray<BrokerError.BrokerError | undefined>, BrokerError.BrokerError>

/** How many moved messages to remember. */
const movedLimit = 100_000

const ttlOf = (queue: QueueInfo | undefined): number => {
  const ttl = queue?.arguments["x-message-ttl"]
  return typeof ttl === "number" ? ttl : 0
}

/** A message to move, and the plan of its queue; `undefined` if the queue was deleted. */
interface Outgoing extends Omit<Item, "plan"> {
  readonly plan: RabbitMqPlan.Plan | undefined
  /** The name that the message and its copies share. */
  readonly identity: string | undefined
}

const isPlanned = (one: Outgoing | undefined): one is Outgoing & Item => one?.plan !== undefined

/** Whether a queue exists. */
const exists = ({ declarer }: Dependencies, queue: string) =>
  declarer
    .onChannel("clean", queue, (channel) => channel.checkQueue(queue))
    .pipe(
      Effect.as(true),
      Effect.catchIf(
        ({ reason }) => reason === "QueueMissing",
        () => Effect.succeed(false)
      )
    )

/** Publishes a message to where the server would have put it, because its queue was deleted. */
const putAside = (
  { publisher, settings, undelivered, uniqueName }: Dependencies,
  { message, original }: Outgoing
): Effect.Effect<BrokerError.BrokerError | undefined> =>
  Effect.callback((resume) => {
    const route = { exchange: undelivered, routingKey: message.queue, headers: {}, expiration: undefined }
    const names = { copy: uniqueName(), isDelay: Names.isOfDelay(settings, message.queue) }
    const publication = toPublication(message, route, names, original)
    publisher.submit(publication, (error) => resume(Effect.succeed(error)))
  })

/** Moves the messages of `stale` queues. `sources` names the stale queue after an exchange that was diverted. */
export const make = (
  env: Dependencies,
  stale: ReadonlyArray<QueueInfo>,
  sources: ReadonlyMap<string, string>
): Move => {
  const queues = new Map(stale.map((queue) => [queue.name, queue]))
  /** While an exchange leads to two queues, each has a copy. The copy in the other queue is not moved again. */
  const movedFrom = BoundedMap.make<string>(movedLimit)
  const source = { type: "unknown", serverVersion: env.serverVersion, keepsNotBefore: true, now: env.now } as const

  /** The queue after all stale ones: each may pass messages on by another routing key. */
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

  /** The message with the rest of its delay; `undefined` if another copy of it was moved. */
  const toOutgoing = (incoming: Incoming, from: string): Omit<Outgoing, "plan"> | undefined => {
    const { content, fields, properties } = incoming
    const identity = identify(content, properties)
    const before = identity === undefined ? undefined : movedFrom.get(identity)
    if (before !== undefined && before !== from) return undefined
    const { body, headers, metadata } = toDelivery(incoming, source)
    const target = targetOf(from)
    const queue = target === from ? targetOf(fields.routingKey) : target
    const at = queues.has(from) ? from : (sources.get(fields.exchange) ?? from)
    const message = { queue, body, headers, delay: restOf(metadata, properties, at), metadata }
    return { message, original: Wire.propertiesOf(incoming), identity }
  }

  return (messages, from, isLast = false) =>
    Effect.gen(function* () {
      const plans = new Map<string, RabbitMqPlan.Plan | undefined>()
      const outgoing: Array<Outgoing | undefined> = []
      for (const incoming of messages) {
        const one = toOutgoing(incoming, from)
        const queue = one?.message.queue
        if (queue !== undefined && !plans.has(queue))
          plans.set(queue, (yield* exists(env, queue)) ? yield* env.plan(queue) : undefined)
        outgoing.push(one && { ...one, plan: plans.get(one.message.queue) })
      }
      const results = (yield* env.sender.sendEach(outgoing.filter(isPlanned))).values()
      const errors: Array<BrokerError.BrokerError | undefined> = []
      for (const one of outgoing) {
        const refusal = isPlanned(one) ? results.next().value : undefined
        const isAside = one !== undefined && (one.plan === undefined || (refusal !== undefined && isLast))
        const error = isAside ? yield* putAside(env, one) : refusal
        if (error === undefined && one?.identity !== undefined) movedFrom.set(one.identity, from)
        errors.push(error)
      }
      return errors
    })
}
