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
import type { Backlog as Backlogs, Broker, BrokerError, Metadata } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Client from "../client.ts"
import { identify } from "../consume/identity.ts"
import { type Decoded, toDelivery } from "../consume/toDelivery.ts"
import { toNative } from "../consume/toNative.ts"
import * as Names from "../names.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { Sender } from "../publish/sender.ts"
import * as Version from "../version.ts"
import * as Wire from "../wire.ts"
import type * as Backlog from "./backlog.ts"
import type { Declarer } from "../declare/declare.ts"
import * as DelayQueues from "./delayQueues.ts"
import * as Look from "./look.ts"
import type { Passive } from "./passive.ts"
import * as Moving from "./moving.ts"
import * as Taking from "./taking.ts"

/** The broker's own. */
export interface Dependencies extends Backlog.Dependencies {
  readonly declarer: Pick<Declarer, "onChannel">
  readonly passive: Passive
  readonly sender: Pick<Sender, "sendEach">
  readonly publisher: Pick<Publisher, "submit">
  readonly serverVersion: () => string
  readonly uniqueName: () => string
  /** The start of the adapter's names. */
  readonly own: string
  /** Resolves after so many milliseconds. */
  readonly sleep: (millis: number) => Promise<void>
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
}

/** Moves messages out of these delay queues, to what is left of their delays. */
const mover = (env: Dependencies, places: ReadonlyArray<DelayQueues.DelayQueue>): Moving.Move =>
  Moving.make(
    {
      ...env,
      plan: (queue) => env.plan({ queue }),
      serverVersion: env.serverVersion(),
      undelivered: Names.undelivered(env.settings)
    },
    places.map(({ arguments: args, name }) => {
      return { name, arguments: args, policy: undefined, messages: undefined, unacknowledged: undefined }
    }),
    new Map()
  )

/** Returns from which on a message is replaced. A server's policy may have a smaller limit than 20. */
const few = 4

/** The first release that gives a message back in time by `basic.nack`, and that has a limit of returns by itself. */
const givesBack = "4.0"
const hasLimit = "4.0"

/** Milliseconds that a message may take from one level to the next: then it is in neither. */
const hop = 50

/** The messages that have been seen in this look: a message may move on from one delay queue to the next meanwhile. */
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

/** The parts of one look. */
interface Sifting {
  readonly queue: string
  readonly removes: (message: Broker.Delayed) => boolean
  readonly seen: Seen
  readonly move: Moving.Move
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
): Promise<Broker.Sifted> => {
  const { queueType } = env.settings
  const version = env.serverVersion()
  const source = { type: queueType, serverVersion: version, keepsNotBefore: true, now: env.now } as const
  const { consumers, isAll, messages } = await Taking.take(channel, name, env)
  const isLimited = queueType === "quorum" && Version.isAtLeast(version, hasLimit)
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
    } else if (isLimited && decoded.returns >= few) worn.push(message)
  }
  const errors = worn.length === 0 ? [] : await env.run(move(worn, name))
  for (const [at, message] of worn.entries()) {
    if (errors[at] !== undefined) continue
    seen.moved.add(lineOf(toDelivery(message, source).metadata))
    Client.ack(channel, message.fields.deliveryTag, false)
  }
  // The queue answers it behind all acknowledgements, which would be forgotten with the channel.
  await Promise.all(consumers.map((tag) => channel.cancel(tag)))
  // What came later as well.
  if (queueType === "classic" || Version.isAtLeast(version, givesBack)) channel.nackAll(true)
  return { looked, removed, isWhole: isAll }
}

const none: Broker.Sifted = { looked: 0, removed: 0, isWhole: true }

/**
 * Goes through all delay queues of a queue, those of the longest delays first: from these messages move on to the others.
 * A queue that was empty is asked again when others have been looked at, until none that has messages is left.
 */
export const sift = (
  env: Dependencies,
  { queue, retry }: Backlogs.Request,
  removes: Sifting["removes"]
): Effect.Effect<Broker.Sifted, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { declarer, management, settings } = env
    const plan = yield* env.plan({ queue, retry })
    const known = management === undefined ? [] : yield* Effect.orElseSucceed(management.queues, () => undefined)
    const places = DelayQueues.of(plan, settings, known).toReversed()
    const seen: Seen = { names: new Set(), moved: new Set() }
    const sifting = { queue, removes, seen, move: mover(env, places) }
    // Nobody can see what the queue itself delays.
    const delaysNone =
      plan.native === undefined && !known?.some(({ delayed = 0, name }) => name === queue && delayed > 0)
    let [looked, removed, isWhole] = [0, 0, delaysNone && known !== undefined]
    for (let [left, isLast] = [places, false]; ; ) {
      const counts = yield* Effect.forEach(left, ({ name }) => DelayQueues.ready(env.passive, name), {
        concurrency: DelayQueues.atOnce
      })
      const full = left.filter((_, at) => counts[at]! > 0)
      if (full.length === 0 && isLast) return { looked, removed, isWhole }
      isLast = full.length === 0
      if (isLast) yield* Effect.sleep(hop)
      left = left.filter((place) => !full.includes(place))
      for (const place of full) {
        const part = yield* Effect.catchIf(
          declarer.onChannel("delayed", place.name, (channel) => siftOne(channel, place, sifting, env)),
          ({ reason }) => reason === "QueueMissing",
          () => Effect.succeed(none)
        )
        looked += part.looked
        removed += part.removed
        isWhole &&= part.isWhole
        yield* Effect.ignore(Look.takenBack(env, place.name))
      }
    }
  })
