/** From outgoing messages to what is published where. */
import { BrokerError } from "@requeue/core/BrokerError"
import type { Outgoing } from "@requeue/core/Outgoing"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../NsqOptions.ts"
import type { Limits } from "./limits.ts"
import * as Names from "./names.ts"
import type { Node, Nodes } from "./nodes.ts"
import type { Answer, Outlet, Publication } from "./outlet.ts"
import type { Pool } from "./pool.ts"
import { toPublication } from "./toPublication.ts"

/** A message, where it goes, and whether it is a copy of a delivery. */
export interface Item {
  readonly message: Outgoing
  readonly target: Names.Queue
  readonly isCopy: boolean
}

export interface Sender {
  /** Succeeds when all are stored, on as many nsqd as that; else fails with the first error. */
  readonly send: (
    items: ReadonlyArray<Item>,
    on?: { readonly count: number; readonly prefer?: Node }
  ) => Effect.Effect<void, BrokerError>
}

/** Publications, and their bytes, that are written before the first answer is awaited. */
const chunk = { messages: 256, bytes: 1024 * 1024 }

/** How often what got no answer is written. */
const rounds = 3

/** The queue that a name means. */
export const target = (
  queue: string,
  operation: string,
  { channel }: Settings
): Effect.Effect<Names.Queue, BrokerError> => {
  const parsed = Names.parse(queue, channel)
  return Names.isRefused(parsed)
    ? Effect.fail(new BrokerError({ broker: "nsq", operation, queue, reason: "Unsupported", ...parsed }))
    : Effect.succeed(parsed)
}

export const make = (env: {
  readonly settings: Settings
  readonly nodes: Nodes
  readonly pool: Pool
  /** Milliseconds since the epoch. */
  readonly now: () => number
}): Effect.Effect<Sender> =>
  Effect.map(Semaphore.make(env.settings.maxUnconfirmed), (room) => {
    const { nodes, now, pool, settings } = env

    const translate = (items: ReadonlyArray<Item>, limits: Limits) =>
      Effect.gen(function* () {
        const publications: Array<Publication> = []
        for (const item of items) {
          const made = toPublication(item, { limits, envelope: settings.envelope, now: now() })
          if (made instanceof BrokerError) return yield* made
          publications.push(made)
        }
        return publications
      })

    /**
     * What nsqd has not read is written once more, on another connection; and so is a copy of which nobody knows whether
     * it was stored, because its original would come again as well.
     */
    const store = (
      outlet: Outlet,
      items: ReadonlyArray<Item>,
      again: Effect.Effect<Outlet, BrokerError>,
      round = 1
    ): Effect.Effect<void, BrokerError> =>
      Effect.gen(function* () {
        for (const target of new Set(items.map((item) => item.target))) yield* nodes.ensure(outlet.node, target)
        const answers = yield* outlet.send(yield* translate(items, nodes.limits()))
        const isOpen = (item: Item, answer: Answer | undefined): boolean =>
          answer === "Unread" || (item.isCopy && answer instanceof BrokerError && answer.reason === "ConnectionLost")
        const open = items.filter((item, index) => isOpen(item, answers[index]))
        const failed = answers.find(
          (answer, index): answer is BrokerError => answer instanceof BrokerError && !isOpen(items[index]!, answer)
        )
        if (open.length > 0) {
          if (round === rounds) return yield* unstored(open[0]!, outlet)
          yield* store(yield* again, open, again, round + 1)
        }
        if (failed !== undefined) return yield* failed
      })

    const sendChunk = (
      items: ReadonlyArray<Item>,
      { count, prefer }: { readonly count: number; readonly prefer?: Node }
    ): Effect.Effect<void, BrokerError> =>
      Effect.gen(function* () {
        // Found now, and not when it has been written in part.
        yield* translate(items, nodes.limits())
        const outlets = yield* pool.pick(count, prefer)
        const again = Effect.map(pool.pick(1, prefer), ([outlet]) => outlet!)
        yield* Effect.forEach(outlets, (outlet) => store(outlet, items, again), { concurrency: "unbounded" })
      })

    return {
      send: (items, on = { count: 1 }) =>
        Effect.forEach(
          chunks(items, Math.min(chunk.messages, settings.maxUnconfirmed)),
          (part) => room.withPermits(part.length)(sendChunk(part, on)),
          { discard: true }
        )
    }
  })

const unstored = ({ message }: Item, { node }: Outlet): BrokerError =>
  new BrokerError({
    broker: "nsq",
    operation: "publish",
    queue: message.queue,
    reason: "ConnectionLost",
    detail: `nsqd ${node.name}: the connection was lost ${rounds} times before an answer`,
    remedy: "Look at nsqd's log, and at the network"
  })

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
