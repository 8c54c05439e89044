/** Sends outgoing messages: chooses the nsqd of each, and publishes again what a lost connection left without an answer. */
import { BrokerError, type Outgoing } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import type { Publishing } from "../connect/publishing.ts"
import type { Declare } from "../declare/declare.ts"
import * as Names from "../names.ts"
import type { Publication, Publisher, PublishResult } from "./publisher.ts"
import { toPublication } from "./toPublication.ts"

/** A message, the queue that it is published to, and whether it is a copy of a delivery. */
interface Item {
  readonly message: Outgoing.Outgoing
  readonly target: Names.Queue
  readonly isCopy: boolean
}

/** On how many nsqd a message is stored, and which of them is the first choice. */
interface Placement {
  readonly count: number
  readonly prefer?: Node
}

export interface Sender {
  /** Succeeds when nsqd has stored all messages, by default each on one nsqd; else fails with the first error. */
  readonly send: (items: ReadonlyArray<Item>, placement?: Placement) => Effect.Effect<void, BrokerError.BrokerError>
}

/** Messages, and bytes of their bodies, that are written before their answers are awaited. */
const chunk = { messages: 256, bytes: 1024 * 1024 }

/** How often a message that got no answer is written. */
const rounds = 3

/** The queue of a name. Fails with `Unsupported` when nsqd would refuse the name. */
export const target = (
  queue: string,
  operation: string,
  { channel }: Settings
): Effect.Effect<Names.Queue, BrokerError.BrokerError> => {
  const parsed = Names.parse(queue, channel)
  return Names.isRefused(parsed)
    ? Effect.fail(new BrokerError.BrokerError({ broker: "nsq", operation, queue, reason: "Unsupported", ...parsed }))
    : Effect.succeed(parsed)
}

interface SenderDependencies {
  readonly settings: Settings
  readonly nodes: Nodes
  readonly publishing: Publishing
  readonly declare: Declare
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Sends with at most `maxUnconfirmed` messages that await their answer; further ones wait. */
export const make = (dependencies: SenderDependencies): Effect.Effect<Sender> =>
  Effect.map(Semaphore.make(dependencies.settings.maxUnconfirmed), (unconfirmed) => {
    const { nodes, now, publishing, settings } = dependencies
    const store = storing(dependencies)

    const sendChunk = (
      items: ReadonlyArray<Item>,
      { count, prefer }: Placement
    ): Effect.Effect<void, BrokerError.BrokerError> =>
      Effect.suspend(() => {
        // A message that is refused fails the chunk before any of it is written.
        const made = toPublications(items, nodes, settings, now())
        if (made instanceof BrokerError.BrokerError) return Effect.fail(made)
        const another = Effect.map(publishing.pick(1, prefer), ([publisher]) => publisher!)
        const storeOn = (publishers: ReadonlyArray<Publisher>, publications: ReadonlyArray<Publication> | undefined) =>
          Effect.forEach(publishers, (publisher) => store(publisher, items, another, publications), {
            concurrency: "unbounded",
            discard: true
          })
        const ready = publishing.ready(count, prefer)
        if (ready !== undefined && made.every(({ defer }) => defer === 0)) return storeOn(ready, made)
        // After a wait, delays are shorter, and the limits of another nsqd may be lower.
        return Effect.flatMap(publishing.pick(count, prefer), (publishers) => storeOn(publishers, undefined))
      })

    return {
      send: (items, placement = { count: 1 }) => {
        const sendPart = (part: ReadonlyArray<Item>) => unconfirmed.withPermits(part.length)(sendChunk(part, placement))
        const parts = chunks(items, Math.min(chunk.messages, settings.maxUnconfirmed))
        return parts.length === 1 ? sendPart(parts[0]!) : Effect.forEach(parts, sendPart, { discard: true })
      }
    }
  })

const toPublications = (
  items: ReadonlyArray<Item>,
  nodes: Nodes,
  { envelope }: Settings,
  now: number
): ReadonlyArray<Publication> | BrokerError.BrokerError => {
  const publications: Array<Publication> = []
  const context = { limits: nodes.limits(), envelope, now }
  for (const item of items) {
    const made = toPublication(item, context)
    if (made instanceof BrokerError.BrokerError) return made
    publications.push(made)
  }
  return publications
}

/**
 * Stores messages on one nsqd. A message that nsqd has not read is written again on the connection that `another`
 * answers. So is one that was written when its connection broke: it may then be stored twice, with the same id.
 */
const storing = ({ declare, nodes, now, settings }: SenderDependencies) => {
  /** Makes the topics and channels of the messages. */
  const ensure = (node: Node, items: ReadonlyArray<Item>): Effect.Effect<void, BrokerError.BrokerError> =>
    items.length === 1
      ? declare(node, items[0]!.target)
      : Effect.forEach(new Set(items.map(({ target: queue }) => queue)), (queue) => declare(node, queue), {
          discard: true
        })

  const store = (
    publisher: Publisher,
    items: ReadonlyArray<Item>,
    another: Effect.Effect<Publisher, BrokerError.BrokerError>,
    /** The messages as nsqd gets them; `undefined` to translate them when they are written. */
    publications: ReadonlyArray<Publication> | undefined,
    round = 1
  ): Effect.Effect<void, BrokerError.BrokerError> => {
    const write = Effect.suspend(() => {
      const made = publications ?? toPublications(items, nodes, settings, now())
      return made instanceof BrokerError.BrokerError ? Effect.fail(made) : publisher.send(made)
    })
    return Effect.flatMap(Effect.andThen(ensure(publisher.node, items), write), (results) => {
      if (results.every((result) => result === "Stored")) return Effect.void
      const unanswered = items.filter((_, index) => isUnanswered(results[index]!))
      const failed = results.find(
        (result): result is BrokerError.BrokerError =>
          result instanceof BrokerError.BrokerError && !isUnanswered(result)
      )
      const rest =
        unanswered.length === 0
          ? Effect.void
          : round === rounds
            ? Effect.fail(unstored(unanswered[0]!, publisher))
            : Effect.flatMap(another, (other) => store(other, unanswered, another, undefined, round + 1))
      return failed === undefined ? rest : Effect.andThen(rest, Effect.fail(failed))
    })
  }
  return store
}

/** Whether nsqd has not read the message, or the connection was lost before its answer. */
const isUnanswered = (result: PublishResult): boolean =>
  result === "Unread" || (result instanceof BrokerError.BrokerError && result.reason === "ConnectionLost")

const unstored = ({ message }: Item, { node }: Publisher): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "publish",
    queue: message.queue,
    reason: "ConnectionLost",
    detail: `nsqd ${node.name}: the connection was lost ${rounds} times before an answer`,
    remedy: "Look at nsqd's log, and at the network"
  })

/** Neighbouring messages in parts of at most so many messages and `chunk.bytes`. */
const chunks = (items: ReadonlyArray<Item>, most: number): ReadonlyArray<ReadonlyArray<Item>> => {
  const parts: Array<Array<Item>> = []
  let bytes = 0
  for (const item of items) {
    const last = parts.at(-1)
    bytes += item.message.body.length
    if (last !== undefined && last.length < most && bytes <= chunk.bytes) last.push(item)
    else {
      parts.push([item])
      bytes = item.message.body.length
    }
  }
  return parts
}
