/** Sends outgoing messages: chooses the nsqd of each, and publishes unanswered messages of a lost connection again. */
import { BrokerError, Direct } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { Settings } from "../../NsqOptions.ts"
import * as Names from "../names.ts"
import { timedOut } from "../toBrokerError.ts"
import * as Chunk from "./chunk.ts"
import * as Outcomes from "./outcomes.ts"
import * as Room from "./room.ts"
import * as Single from "./single.ts"
import type { Item } from "./toPublication.ts"

type Begin = Direct.Begin<void, BrokerError.BrokerError>

export interface Sender {
  /**
   * Succeeds when all messages are stored, each on the requested number of nsqd; otherwise fails with the first error.
   */
  readonly send: (
    items: ReadonlyArray<Item>,
    placement: Chunk.Placement
  ) => Direct.Direct<void, BrokerError.BrokerError>
  /** Like `send`, but starts immediately. */
  readonly begin: (
    items: ReadonlyArray<Item>,
    placement: Chunk.Placement,
    ...then: Parameters<Begin>
  ) => ReturnType<Begin>
}

/** Maximum messages, and bytes of their bodies, in one part of a batch. */
const most = { messages: 256, bytes: 1024 * 1024 }

/** Returns the queue of a name, or `Unsupported` if nsqd would refuse the name. */
export const target = (
  queue: string,
  operation: string,
  { channel }: Settings
): Names.Queue | BrokerError.BrokerError => {
  const parsed = Names.parse(queue, channel)
  return Names.isRefused(parsed)
    ? new BrokerError.BrokerError({ broker: "nsq", operation, queue, reason: "Unsupported", ...parsed })
    : parsed
}

interface SenderDependencies extends Omit<Chunk.ChunksDependencies, "room"> {
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
  /** Runs a send that waits for room, a connection, a topic, or the next attempt. */
  readonly fork: (sent: Chunk.Sent) => Fiber.Fiber<void, BrokerError.BrokerError>
}

/** Makes globally unique nonces. */
const makeNonces = (): (() => string) => {
  const process = crypto.randomUUID().replaceAll("-", "")
  let count = 0
  return () => `${process}${(count++).toString(36)}`
}

/** Makes a sender. At most `maxUnconfirmed` messages await their answers; further ones wait. */
export const make = (dependencies: SenderDependencies): Sender => {
  const { fork, settings } = dependencies
  const { maxUnconfirmed, publishTimeout } = settings
  const room = Room.make(maxUnconfirmed)
  const limit = limiting(dependencies)
  const chunks = Chunk.make({ ...dependencies, room })
  const single = Single.make({ ...dependencies, chunks, room, limit })
  const nonce = makeNonces()

  const batch = (items: ReadonlyArray<Item>, placement: Chunk.Placement): Single.Sending => {
    const outcomes = Outcomes.make(placement.count, publishTimeout)
    const sendPart = (part: ReadonlyArray<Item>) =>
      Effect.suspend(() => {
        const inTime = limit(part)
        return room.within(part.length, chunks.send({ items: part, placement, outcomes, inTime }), inTime)
      })
    const parts = partsOf(items, Math.min(most.messages, maxUnconfirmed))
    const sent = parts.length === 1 ? sendPart(parts[0]!) : Effect.forEach(parts, sendPart, { discard: true })
    return {
      begin: (onExit) => Direct.run(sent, fork, onExit),
      outcomes: () => outcomes
    }
  }

  const begin: Sender["begin"] = (items, placement, onExit) => {
    const all = placement.count === 1 ? items : items.map((item) => ({ ...item, nonce: nonce() }))
    const isSingle = all.length === 1 && placement.count === 1
    const sending = isSingle ? single(all[0]!, placement) : batch(all, placement)
    const giveUp = sending.begin((exit) =>
      onExit(Exit.isSuccess(exit) ? exit : Exit.mapError(exit, (error) => sending.outcomes().errorOf(all, error)))
    )
    return () => {
      giveUp()
      return sending.outcomes().errorOf(all, givenUp(all[0]?.message.queue))
    }
  }

  return { begin, send: (items, placement) => Direct.make((onExit) => begin(items, placement, onExit)) }
}

/** Makes the error of a publish that was interrupted before it was written. */
const givenUp = (queue: string | undefined): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: "publish",
    queue,
    reason: "ConnectionFailed",
    detail: "the publish was cancelled before it was written to an nsqd",
    remedy: "Send the message again"
  })

/** Limits a send to `publishTimeout` from now on. */
const limiting =
  ({ elapsed, settings: { publishTimeout } }: SenderDependencies) =>
  (items: ReadonlyArray<Item>): Chunk.Chunk["inTime"] => {
    const end = elapsed() + publishTimeout
    return (sent) =>
      Effect.suspend(() =>
        Effect.timeoutOrElse(sent, {
          duration: Duration.millis(Math.max(0, end - elapsed())),
          orElse: () => Effect.fail(timedOut({ operation: "publish", queue: items[0]?.message.queue }, publishTimeout))
        })
      )
  }

/** Splits messages into parts of at most `count` messages and `most.bytes`. */
const partsOf = (items: ReadonlyArray<Item>, count: number): ReadonlyArray<ReadonlyArray<Item>> => {
  const parts: Array<Array<Item>> = []
  let bytes = 0
  for (const item of items) {
    const last = parts.at(-1)
    bytes += item.message.body.length
    if (last !== undefined && last.length < count && bytes <= most.bytes) last.push(item)
    else {
      parts.push([item])
      bytes = item.message.body.length
    }
  }
  return parts
}
