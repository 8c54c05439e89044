/**
 * Goes through the messages that wait in delay queues, and removes some.
 *
 * A look takes messages of a delay queue, and gives them back. They keep the time at which they expire, on every release:
 * none comes early, and one that was due meanwhile goes on when it is given back (3.10.8, 4.0.5, 4.3.6). Two releases need
 * care:
 *
 * - Before 4.0, a quorum queue forgets to look at the clock when messages are given back by `basic.nack`: they stay until
 *   the next message behind them is due. It does not when a channel is closed, so that this gives them back.
 * - From 4.0 on, a queue without a limit of its own hands a message on after 20 returns, before its time. Before 4.3 every
 *   return counts, from then on those of lost connections. A message that has been returned a few times is replaced by a
 *   confirmed copy with what is left of its delay.
 */
import { type Backlog, type Broker, type BrokerError, Metadata } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as Client from "../client.ts"
import { identify } from "../consume/identity.ts"
import { type Decoded, toDelivery } from "../consume/toDelivery.ts"
import { toNative } from "../consume/toNative.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Version from "../version.ts"
import * as Wire from "../wire.ts"
import * as DelayQueues from "./delayQueues.ts"
import * as Look from "./look.ts"
import type { Management } from "./management.ts"
import type { Move } from "./moving.ts"

/** The broker's own. */
export interface Dependencies extends Pick<Look.Dependencies, "serverVersion" | "now" | "sleep"> {
  readonly settings: Settings
  readonly declarer: Pick<Declarer, "onChannel">
  readonly management: Management | undefined
  readonly plan: (request: RabbitMqPlan.Request) => Effect.Effect<RabbitMqPlan.Plan, BrokerError.BrokerError>
  /** Moves messages out of these delay queues, to what is left of their delays. */
  readonly mover: (places: ReadonlyArray<DelayQueues.DelayQueue>) => Move
  readonly run: <A>(effect: Effect.Effect<A, BrokerError.BrokerError>) => Promise<A>
}

/** The most messages of a delay queue, and about the most bytes, that are looked at. */
const most = 10_000
const mostBytes = 64 * 1024 * 1024

/** Messages of one consumer; of further ones, it is known by then how large they are. */
const portion = 1000

/** Milliseconds for which messages are taken at most, since those that become due wait meanwhile; and for which none comes. */
const patience = 2000
const silence = 500

/** Returns from which on a message is replaced. A server's policy may have a smaller limit than 20. */
const few = 4

/** The first release that gives a message back in time by `basic.nack`. */
const givesBack = "4.0"

interface Taken {
  readonly messages: ReadonlyArray<Client.Incoming>
  readonly consumers: ReadonlyArray<string>
  readonly isAll: boolean
}

const take = async (channel: Client.Channel, queue: string, env: Dependencies): Promise<Taken> => {
  const messages: Array<Client.Incoming> = []
  const consumers: Array<string> = []
  let bytes = 0
  let isCancelled = false
  const { messageCount } = await channel.checkQueue(queue)
  const wanted = Math.min(messageCount, most)
  const begun = env.now()
  const isOver = () => isCancelled || messages.length >= wanted || bytes >= mostBytes || env.now() > begun + patience
  for (let before = -1; messages.length > before && !isOver(); ) {
    before = messages.length
    const count = Math.min(portion, wanted - before)
    await channel.prefetch(count)
    const { consumerTag } = await channel.consume(queue, (message) => {
      if (message === null) return void (isCancelled = true)
      messages.push(message)
      bytes += message.content.length
    })
    consumers.push(consumerTag)
    await Look.until(silence, env, () => messages.length >= before + count || isOver())
  }
  const isAll = messages.length >= messageCount || (await channel.checkQueue(queue)).messageCount === 0
  return { messages, consumers, isAll }
}

/** What has been seen in this look: a message may move on from one delay queue to the next meanwhile. */
interface Seen {
  readonly names: Set<string>
  readonly moved: Set<string>
}

/** A text that a message and its copy with the rest of its delay have in common, and no other one as good as ever. */
const lineOf = ({ attempts, firstPublished, id, notBefore }: Metadata.Metadata): string =>
  JSON.stringify([id, attempts, firstPublished, notBefore])

const isNew = ({ metadata }: Decoded, message: Client.Incoming, { moved, names }: Seen): boolean => {
  if (moved.has(lineOf(metadata))) return false
  const name = identify(message.content, message.properties)
  if (name === undefined) return true
  const isFirst = !names.has(name)
  names.add(name)
  return isFirst
}

const shown = (queue: string, { body, headers, metadata }: Decoded, message: Client.Incoming): Broker.Delayed => ({
  delivery: {
    body,
    headers,
    // Returns of a delay queue are looks.
    attempts: metadata.attempts + 1,
    metadata,
    native: toNative(Wire.propertiesOf(message), queue),
    receipt: undefined
  },
  due: metadata.notBefore === 0 ? undefined : metadata.notBefore
})

interface Part extends Broker.Sifted {
  /** Messages that were given back. */
  readonly kept: number
}

/** The parts of one look. */
interface Sifting {
  readonly queue: string
  readonly removes: (message: Broker.Delayed) => boolean
  readonly seen: Seen
  readonly move: Move
}

/**
 * Goes through one delay queue.
 *
 * Long, because it is one sequence on one channel.
 */
const siftOne = async (
  channel: Client.Channel,
  { isShared, name }: DelayQueues.DelayQueue,
  { move, queue, removes, seen }: Sifting,
  env: Dependencies
): Promise<Part> => {
  const { queueType } = env.settings
  const version = env.serverVersion()
  const source = { type: queueType, serverVersion: version, keepsNotBefore: true, now: env.now } as const
  const { consumers, isAll, messages } = await take(channel, name, env)
  const kept: Array<Client.Incoming> = []
  const worn: Array<Client.Incoming> = []
  let looked = 0
  let removed = 0
  for (const message of messages) {
    const decoded = toDelivery(message, source)
    const isMeant = (!isShared || message.fields.routingKey === queue) && isNew(decoded, message, seen)
    if (isMeant) looked++
    if (isMeant && removes(shown(queue, decoded, message))) {
      Client.ack(channel, message.fields.deliveryTag, false)
      removed++
    } else if (queueType === "quorum" && decoded.returns >= few) worn.push(message)
    else kept.push(message)
  }
  const errors = worn.length === 0 ? [] : await env.run(move(worn, name))
  for (const [at, message] of worn.entries()) {
    if (errors[at] !== undefined) continue
    seen.moved.add(lineOf(toDelivery(message, source).metadata))
    Client.ack(channel, message.fields.deliveryTag, false)
  }
  // The queue answers it behind all acknowledgements, which would be forgotten with the channel.
  for (const tag of consumers) await channel.cancel(tag)
  const last = messages.at(-1)
  if (last !== undefined && (queueType === "classic" || Version.isAtLeast(version, givesBack)))
    Client.requeue(channel, last.fields.deliveryTag, "NackAll")
  return { looked, removed, isWhole: isAll, kept: messages.length - removed - worn.length }
}

const none: Part = { looked: 0, removed: 0, isWhole: true, kept: 0 }

/** Goes through all delay queues of a queue, those of the longest delays first: from these messages move on to the others. */
export const sift = (
  env: Dependencies,
  { queue, retry }: Backlog.Request,
  removes: Sifting["removes"]
): Effect.Effect<Broker.Sifted, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { declarer, management, settings } = env
    const plan = yield* env.plan({ queue, retry })
    const known = management === undefined ? [] : yield* Effect.orElseSucceed(management.queues, () => [])
    const places = DelayQueues.of(plan, settings, known)
    const sifting = { queue, removes, seen: { names: new Set<string>(), moved: new Set<string>() }, move: env.mover(places) }
    let [looked, removed, isWhole] = [0, 0, plan.native === undefined]
    for (const place of places.toReversed()) {
      const part = yield* Effect.catchIf(
        declarer.onChannel("delayed", place.name, (channel) => siftOne(channel, place, sifting, env)),
        ({ reason }) => reason === "QueueMissing",
        () => Effect.succeed(none)
      )
      looked += part.looked
      removed += part.removed
      isWhole &&= part.isWhole
      if (part.kept > 0) yield* Look.recounted(env, place.name, part.kept)
    }
    return { looked, removed, isWhole }
  })
