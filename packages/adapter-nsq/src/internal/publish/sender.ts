/** Sends outgoing messages: chooses the nsqd of each, and publishes again what a lost connection left without an answer. */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import type { Publishing } from "../connect/publishing.ts"
import type { Declare } from "../declare/declare.ts"
import * as Names from "../names.ts"
import { timedOut } from "../toBrokerError.ts"
import type { Publication, Publisher, PublishResult } from "./publisher.ts"
import { type Item, toPublication } from "./toPublication.ts"

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

/** How often a message is written whose connection is lost before the answer. */
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
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}

/** Makes nonces, which no other process and no producer of messages makes. */
const makeNonces = (): (() => string) => {
  const process = crypto.randomUUID().replaceAll("-", "")
  let count = 0
  return () => `${process}${(count++).toString(36)}`
}

/** Sends with at most `maxUnconfirmed` messages that await their answer; further ones wait. */
export const make = (dependencies: SenderDependencies): Effect.Effect<Sender> =>
  Effect.map(Semaphore.make(dependencies.settings.maxUnconfirmed), (unconfirmed) => {
    const { elapsed, nodes, now, publishing, settings } = dependencies
    const store = storing(dependencies)
    const nonce = makeNonces()

    const sendChunk = (
      items: ReadonlyArray<Item>,
      { count, prefer }: Placement,
      tell: Tell
    ): Effect.Effect<void, BrokerError.BrokerError> =>
      Effect.suspend(() => {
        // A message that is refused fails the chunk before any of it is written.
        const made = toPublications(items, nodes, settings, now())
        if (made instanceof BrokerError.BrokerError) return Effect.fail(made)
        const end = elapsed() + settings.publishTimeout
        /** Ends what waits for a connection, or for another answer, when the time for all of it is over. */
        const inTime = (effect: Effect.Effect<void, BrokerError.BrokerError>) =>
          Effect.suspend(() =>
            Effect.timeoutOrElse(effect, {
              duration: Duration.millis(Math.max(0, end - elapsed())),
              orElse: () =>
                Effect.fail(timedOut({ operation: "publish", queue: items[0]?.message.queue }, settings.publishTimeout))
            })
          )
        const another = Effect.map(publishing.pick(1, prefer), ([publisher]) => publisher!)
        const storeAgain: Again = (some, round) =>
          Effect.flatMap(another, (publisher) => store(publisher, some, undefined, storeAgain, round, tell))
        const storeOn = (publishers: ReadonlyArray<Publisher>, publications: ReadonlyArray<Publication> | undefined) =>
          Effect.forEach(
            publishers,
            (publisher) =>
              store(publisher, items, publications, (some, round) => inTime(storeAgain(some, round)), 1, tell),
            { concurrency: "unbounded", discard: true }
          )
        const ready = publishing.ready(count, prefer)
        if (ready !== undefined && made.every(({ defer }) => defer === 0)) return storeOn(ready, made)
        // After a wait, delays are shorter, and the limits of another nsqd may be lower.
        return Effect.flatMap(publishing.pick(count, prefer), (publishers) => inTime(storeOn(publishers, undefined)))
      })

    return {
      send: (items, placement = { count: 1 }) => {
        const twins = placement.count === 1 ? items : items.map((item) => ({ ...item, nonce: nonce() }))
        const told = outcomes(placement.count)
        const sendPart = (part: ReadonlyArray<Item>) =>
          unconfirmed.withPermits(part.length)(sendChunk(part, placement, told.tell))
        const parts = chunks(twins, Math.min(chunk.messages, settings.maxUnconfirmed))
        const sent = parts.length === 1 ? sendPart(parts[0]!) : Effect.forEach(parts, sendPart, { discard: true })
        return twins.length === 1 ? sent : Effect.mapError(sent, (error) => told.errorOf(twins, error))
      }
    }
  })

/** Called with the answer of each nsqd to a message, as often as it is written. */
type Tell = (item: Item, result: PublishResult) => void

/** The outcome of each message that is stored on so many nsqd. */
const outcomes = (count: number) => {
  const copies = new Map<Item, number>()
  const refused = new Map<Item, BrokerError.BrokerError>()
  const tell: Tell = (item, result) => {
    if (result === "Stored") copies.set(item, (copies.get(item) ?? 0) + 1)
    else if (result !== "Unread" && !isLost(result)) refused.set(item, result)
  }
  return {
    tell,
    /** The error of a batch that failed with this one. */
    errorOf: (items: ReadonlyArray<Item>, error: BrokerError.BrokerError): BrokerError.BrokerError => {
      const own = (item: Item) => refused.get(item) ?? error
      // Another nsqd may have what one of them refuses.
      const unstored = (item: Item) => (count === 1 ? own(item) : mayBeStored(own(item), "another nsqd may have it"))
      return (
        BrokerError.ofBatch(items.map((item) => ((copies.get(item) ?? 0) >= count ? undefined : unstored(item)))) ??
        error
      )
    }
  }
}

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

/** Stores messages that were not stored in an earlier round, on any nsqd that is up. */
type Again = (items: ReadonlyArray<Item>, round: number) => Effect.Effect<void, BrokerError.BrokerError>

/**
 * Stores messages on one nsqd. A message that nsqd has not read is stored `again`. So is one that was written when its
 * connection broke: it may then be stored twice, with the same id.
 */
const storing = ({ declare, nodes, now, settings }: SenderDependencies) => {
  /** Makes the topics and channels of the messages. */
  const ensure = (node: Node, items: ReadonlyArray<Item>): Effect.Effect<void, BrokerError.BrokerError> =>
    items.length === 1
      ? declare(node, items[0]!.target)
      : Effect.forEach(new Set(items.map(({ target: queue }) => queue)), (queue) => declare(node, queue), {
          discard: true
        })

  return (
    publisher: Publisher,
    items: ReadonlyArray<Item>,
    /** The messages as nsqd gets them; `undefined` to translate them when they are written. */
    publications: ReadonlyArray<Publication> | undefined,
    again: Again,
    round: number,
    tell: Tell
  ): Effect.Effect<void, BrokerError.BrokerError> => {
    const write = Effect.suspend(() => {
      const made = publications ?? toPublications(items, nodes, settings, now())
      return made instanceof BrokerError.BrokerError ? Effect.fail(made) : publisher.send(made)
    })
    return Effect.flatMap(Effect.andThen(ensure(publisher.node, items), write), (results) => {
      for (const [index, item] of items.entries()) tell(item, results[index]!)
      if (results.every((result) => result === "Stored")) return Effect.void
      const errors = results.filter((result) => result instanceof BrokerError.BrokerError)
      const lost = errors.find(isLost)
      const refused = errors.find((error) => !isLost(error))
      const unstored = items.filter((_, index) => isUnstored(results[index]!))
      const rest =
        unstored.length === 0
          ? Effect.void
          : lost === undefined
            ? again(unstored, round)
            : round === rounds
              ? Effect.fail(mayBeStored(lost, `so it was ${rounds} times`))
              : Effect.mapError(again(unstored, round + 1), (error) =>
                  error.reason === "ConnectionFailed" ? mayBeStored(lost, error.detail) : error
                )
      return refused === undefined ? rest : Effect.andThen(rest, Effect.fail(refused))
    })
  }
}

/** Whether the connection was lost before the answer. */
const isLost = ({ reason }: BrokerError.BrokerError): boolean => reason === "ConnectionLost"

/** Whether nsqd has not read the message, or the connection was lost before its answer. */
const isUnstored = (result: PublishResult): boolean =>
  result === "Unread" || (result instanceof BrokerError.BrokerError && isLost(result))

/** The error of a message that was lost before its answer, and could not be written again: it may be stored. */
const mayBeStored = (lost: BrokerError.BrokerError, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "publish",
    queue: lost.queue,
    reason: "ConnectionLost",
    detail: `${lost.detail}; ${detail}`,
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
