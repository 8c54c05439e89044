/** From outgoing messages to what is published where. */
import { BrokerError, type Outgoing } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../../NsqOptions.ts"
import * as Names from "../names.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import type { Answer, Outlet, Publication } from "./publisher.ts"
import type { Pool } from "../connect/publishing.ts"
import { toPublication } from "./toPublication.ts"

/** A message, where it goes, and whether it is a copy of a delivery. */
interface Item {
  readonly message: Outgoing.Outgoing
  readonly target: Names.Queue
  readonly isCopy: boolean
}

export interface Sender {
  /** Succeeds when all are stored, on as many nsqd as that; else fails with the first error. */
  readonly send: (
    items: ReadonlyArray<Item>,
    on?: { readonly count: number; readonly prefer?: Node }
  ) => Effect.Effect<void, BrokerError.BrokerError>
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
): Effect.Effect<Names.Queue, BrokerError.BrokerError> => {
  const parsed = Names.parse(queue, channel)
  return Names.isRefused(parsed)
    ? Effect.fail(new BrokerError.BrokerError({ broker: "nsq", operation, queue, reason: "Unsupported", ...parsed }))
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

    const translate = (items: ReadonlyArray<Item>): ReadonlyArray<Publication> | BrokerError.BrokerError => {
      const publications: Array<Publication> = []
      const context = { limits: nodes.limits(), envelope: settings.envelope, now: now() }
      for (const item of items) {
        const made = toPublication(item, context)
        if (made instanceof BrokerError.BrokerError) return made
        publications.push(made)
      }
      return publications
    }

    /** Sees that there are topics and channels for them. */
    const ensure = (node: Node, items: ReadonlyArray<Item>): Effect.Effect<void, BrokerError.BrokerError> =>
      items.length === 1
        ? nodes.ensure(node, items[0]!.target)
        : Effect.forEach(new Set(items.map(({ target }) => target)), (target) => nodes.ensure(node, target), {
            discard: true
          })

    /**
     * What nsqd has not read is written once more, on another connection; and so is what nobody knows the fate of,
     * because its connection broke. There may be two of it then, of the same id.
     */
    const store = (
      outlet: Outlet,
      items: ReadonlyArray<Item>,
      again: Effect.Effect<Outlet, BrokerError.BrokerError>,
      /** What they become; `undefined`: what they do at the time of writing. */
      publications: ReadonlyArray<Publication> | undefined,
      round = 1
    ): Effect.Effect<void, BrokerError.BrokerError> => {
      const write = Effect.suspend(() => {
        const made = publications ?? translate(items)
        return made instanceof BrokerError.BrokerError ? Effect.fail(made) : outlet.send(made)
      })
      return Effect.flatMap(Effect.andThen(ensure(outlet.node, items), write), (answers) => {
        if (answers.every((answer) => answer === "Stored")) return Effect.void
        const open = items.filter((_, index) => isOpen(answers[index]!))
        const failed = answers.find(
          (answer): answer is BrokerError.BrokerError => answer instanceof BrokerError.BrokerError && !isOpen(answer)
        )
        const rest =
          open.length === 0
            ? Effect.void
            : round === rounds
              ? Effect.fail(unstored(open[0]!, outlet))
              : Effect.flatMap(again, (other) => store(other, open, again, undefined, round + 1))
        return failed === undefined ? rest : Effect.andThen(rest, Effect.fail(failed))
      })
    }

    const sendChunk = (
      items: ReadonlyArray<Item>,
      { count, prefer }: { readonly count: number; readonly prefer?: Node }
    ): Effect.Effect<void, BrokerError.BrokerError> =>
      Effect.suspend(() => {
        // Found now, and not when it has been written in part.
        const made = translate(items)
        if (made instanceof BrokerError.BrokerError) return Effect.fail(made)
        const again = Effect.map(pool.pick(1, prefer), ([outlet]) => outlet!)
        const storeOn = (outlets: ReadonlyArray<Outlet>, publications: ReadonlyArray<Publication> | undefined) =>
          Effect.forEach(outlets, (outlet) => store(outlet, items, again, publications), {
            concurrency: "unbounded",
            discard: true
          })
        const ready = pool.ready(count, prefer)
        if (ready !== undefined && made.every(({ defer }) => defer === 0)) return storeOn(ready, made)
        // After a wait, delays have become shorter, and another nsqd may take less.
        return Effect.flatMap(pool.pick(count, prefer), (outlets) => storeOn(outlets, undefined))
      })

    return {
      send: (items, on = { count: 1 }) => {
        const sendPart = (part: ReadonlyArray<Item>) => room.withPermits(part.length)(sendChunk(part, on))
        const parts = chunks(items, Math.min(chunk.messages, settings.maxUnconfirmed))
        return parts.length === 1 ? sendPart(parts[0]!) : Effect.forEach(parts, sendPart, { discard: true })
      }
    }
  })

const isOpen = (answer: Answer): boolean =>
  answer === "Unread" || (answer instanceof BrokerError.BrokerError && answer.reason === "ConnectionLost")

const unstored = ({ message }: Item, { node }: Outlet): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
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
