/** Sends outgoing messages: chooses the nsqd of each, and publishes again what a lost connection left without an answer. */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import type { Publishing } from "../connect/publishing.ts"
import type { Declare } from "../declare/declare.ts"
import * as Names from "../names.ts"
import { timedOut } from "../toBrokerError.ts"
import * as Outcomes from "./outcomes.ts"
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
    const { settings } = dependencies
    const sendChunk = sending(dependencies)
    const limit = limiting(dependencies)
    const nonce = makeNonces()

    return {
      send: (items, placement = { count: 1 }) => {
        const twins = placement.count === 1 ? items : items.map((item) => ({ ...item, nonce: nonce() }))
        const outcomes = Outcomes.make(placement.count, settings.publishTimeout)
        const sendPart = (part: ReadonlyArray<Item>) =>
          Effect.suspend(() => {
            const inTime = limit(part)
            const permits = part.length
            const sent = sendChunk(part, placement, outcomes, inTime)
            // The wait for others counts as well.
            const sentLater = inTime(unconfirmed.withPermits(permits)(sent))
            return Effect.flatMap(unconfirmed.withPermitsIfAvailable(permits)(sent), (done) =>
              Option.isSome(done) ? Effect.void : sentLater
            )
          })
        const parts = chunks(twins, Math.min(chunk.messages, settings.maxUnconfirmed))
        const sent = parts.length === 1 ? sendPart(parts[0]!) : Effect.forEach(parts, sendPart, { discard: true })
        return sent.pipe(
          Effect.mapError((error) => outcomes.errorOf(twins, error)),
          Effect.onInterrupt(() => Effect.fail(outcomes.errorOf(twins, givenUp(items[0]?.message.queue))))
        )
      }
    }
  })

/** The error of what is interrupted before it is written. */
const givenUp = (queue: string | undefined): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "publish",
    queue,
    reason: "ConnectionFailed",
    detail: "it was given up before it was written to an nsqd",
    remedy: "Send it again"
  })

type Sent = Effect.Effect<void, BrokerError.BrokerError>

/** Limits what messages wait for to `publishTimeout` from now on. */
const limiting =
  ({ elapsed, settings: { publishTimeout } }: SenderDependencies) =>
  (items: ReadonlyArray<Item>) => {
    const end = elapsed() + publishTimeout
    return (sent: Sent): Sent =>
      Effect.suspend(() =>
        Effect.timeoutOrElse(sent, {
          duration: Duration.millis(Math.max(0, end - elapsed())),
          orElse: () => Effect.fail(timedOut({ operation: "publish", queue: items[0]?.message.queue }, publishTimeout))
        })
      )
  }

/** Sends messages; `inTime` limits what they wait for. */
const sending = (dependencies: SenderDependencies) => {
  const { declare, nodes, now, publishing, settings } = dependencies
  const store = storing(dependencies)

  return (
    items: ReadonlyArray<Item>,
    { count, prefer }: Placement,
    outcomes: Outcomes.Outcomes,
    inTime: (sent: Sent) => Sent
  ): Sent =>
    Effect.suspend(() => {
      // A message that is refused fails the chunk before any of it is written.
      const made = toPublications(items, nodes, settings, now())
      if (made instanceof BrokerError.BrokerError) return Effect.fail(made)
      const storeOn = (publishers: ReadonlyArray<Publisher>, publications: ReadonlyArray<Publication> | undefined) => {
        /** The nsqd of each copy: no two are stored on the same one. */
        const homes = publishers.map(({ node }) => node)
        return each(publishers, (publisher, copy) => {
          const another = Effect.map(publishing.pick(count, prefer), (up) => {
            const found = up.find(({ node }) => homes.every((home, other) => other === copy || home !== node))!
            homes[copy] = found.node
            return found
          })
          const storeAgain: Again = (some, round) =>
            Effect.flatMap(another, (other) => store(other, some, undefined, storeAgain, round, outcomes))
          return store(publisher, items, publications, (some, round) => inTime(storeAgain(some, round)), 1, outcomes)
        })
      }
      const ready = publishing.ready(count, prefer)
      const isDeclared = ({ node }: Publisher) => items.every(({ target }) => declare.isDone(node, target))
      // What waits for nothing needs no timer beside that of the publisher, which ends a connection without answers as well.
      if (ready?.every(isDeclared) === true && made.every(({ defer }) => defer === 0)) return storeOn(ready, made)
      // Another pick would take the turn of another nsqd.
      const picked = ready === undefined ? publishing.pick(count, prefer) : Effect.succeed(ready)
      // After a wait, delays are shorter, and the limits of another nsqd may be lower.
      return Effect.flatMap(picked, (publishers) => inTime(storeOn(publishers, undefined)))
    })
}

/** Runs one after each other's start, and lets all of them end: what is interrupted cannot tell what it has stored. */
const each = (
  publishers: ReadonlyArray<Publisher>,
  run: (publisher: Publisher, index: number) => Effect.Effect<void, BrokerError.BrokerError>
): Effect.Effect<void, BrokerError.BrokerError> =>
  publishers.length === 1
    ? run(publishers[0]!, 0)
    : Effect.flatMap(
        Effect.forEach(publishers, (publisher, index) => Effect.result(run(publisher, index)), {
          concurrency: "unbounded"
        }),
        (results) => Effect.fromResult(results.find(Result.isFailure) ?? Result.succeed(undefined))
      )

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
  /** Makes the topics and channels of the messages. Where that has no answer, nothing is written yet. */
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
    outcomes: Outcomes.Outcomes
  ): Effect.Effect<void, BrokerError.BrokerError> => {
    const write = Effect.suspend(() => {
      const made = publications ?? toPublications(items, nodes, settings, now())
      if (made instanceof BrokerError.BrokerError) return Effect.fail(made)
      outcomes.written(items)
      return publisher.send(made)
    })
    return Effect.flatMap(Effect.andThen(ensure(publisher.node, items), write), (results) => {
      for (const [index, item] of items.entries()) outcomes.answered(item, results[index]!)
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
              ? Effect.fail(lost)
              : again(unstored, round + 1)
      return refused === undefined ? rest : Effect.andThen(rest, Effect.fail(refused))
    })
  }
}

/** Whether the connection was lost before the answer. */
const isLost = ({ reason }: BrokerError.BrokerError): boolean => reason === "ConnectionLost"

/** Whether nsqd has not read the message, or the connection was lost before its answer. */
const isUnstored = (result: PublishResult): boolean =>
  result === "Unread" || (result instanceof BrokerError.BrokerError && isLost(result))

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
