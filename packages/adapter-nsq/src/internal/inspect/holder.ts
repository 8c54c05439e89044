/** A session without credit: it asks for messages page by page, and holds them until they are removed or returned. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Client from "../client.ts"
import * as Connection from "../connect/connection.ts"
import { type Receipt, receiptOf } from "../consume/receipt.ts"
import * as Session from "../consume/session.ts"
import type { SessionsDependencies } from "../consume/sessions.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import { gone } from "../settle/settle.ts"
import { refusedId, timedOut, toBrokerError } from "../toBrokerError.ts"
import type { Place } from "./places.ts"

export interface HolderDependencies extends SessionsDependencies {
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Waits until nsqd has handled all earlier commands, and collects those that it refused, by the ids of their messages. */
interface Fence {
  readonly refused: Set<string>
  readonly end: (error?: unknown) => void
}

export interface Holder {
  readonly queue: string
  readonly session: Session.Session
  readonly env: HolderDependencies
  /** The receipts of its messages by their ids, the oldest first. */
  readonly held: Map<string, Receipt>
  /** Those that were not shown yet. */
  readonly arrived: Array<Delivery.Delivery>
  readonly fences: Array<Fence>
  /** Whether nsqd has taken a message back. */
  isLapsed: boolean
}

/** Milliseconds without a message after which a page ends, and before it is asked again what has come. */
const silence = 3000
const pause = 2

/** Milliseconds that nsqd may take to have all messages of a connection back. */
const closeTimeout = 30_000

/** The part of the longest lease for which messages are held. */
const safe = 0.9

/**
 * An id that no message has. nsqd handles the commands of a connection in their order, and refuses to touch this message
 * without closing the connection. Before that it has refused each earlier `FIN` that it could not carry out.
 * https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go
 */
const fence = "not-a-message-id"

const ignore = (): void => {}

/** Subscribes to a channel. nsqd sends nothing yet. */
export const open = (
  queue: string,
  { node, queue: topic }: Place,
  env: HolderDependencies
): Effect.Effect<Holder, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    const { elapsed, messageTimeout, now, settings } = env
    let holder: Holder | undefined
    const on: Client.Listener = {
      message: (payload) => holder?.session.receive(payload),
      refused: (text) => {
        if (holder === undefined) return
        const id = refusedId(text) ?? ""
        if (id === fence) holder.fences.shift()?.end()
        else if (holder.session.refuse(text) === "lost") holder.isLapsed = true
        else holder.fences[0]?.refused.add(id)
      },
      closed: (error) => {
        holder?.session.end()
        for (const { end } of holder?.fences.splice(0) ?? []) end(error)
      }
    }
    const request = { topic: topic.topic, channel: topic.channel, messageTimeout }
    const opened = Connection.open({ operation: "browse", queue, node: node.name }, settings, (signal) =>
      Client.subscribe(settings, node.address, request, on, signal)
    )
    return Effect.map(opened, (connection) => {
      const [held, arrived]: [Holder["held"], Holder["arrived"]] = [new Map(), []]
      const session = Session.make({
        node,
        topic,
        connection,
        gone: Deferred.makeUnsafe(),
        elapsed,
        decode: (frame) => toDelivery(frame, { now: now(), nsqdNow: node.clock.now(now(), elapsed()), due: undefined }),
        onDelivery: (delivery) => {
          const receipt = receiptOf(delivery)
          holder!.isLapsed ||= held.has(receipt.id)
          held.set(receipt.id, receipt)
          arrived.push(delivery)
        }
      })
      return (holder = { queue, session, env, held, arrived, fences: [], isLapsed: false })
    })
  })

export const isOpen = ({ session }: Holder): boolean => session.connection.isOpen()

/** How many more messages nsqd sends. */
export const room = ({ held, session }: Holder): number => session.connection.identity.maxRdyCount - held.size

/** Why others may have messages that are held, now or at a later time. */
export const lossAt = (holder: Holder, time: number): "ConnectionLost" | "LeaseLost" | undefined => {
  const [first] = holder.held.values()
  if (first === undefined) return undefined
  if (!isOpen(holder)) return "ConnectionLost"
  const ends = first.receivedAt + safe * holder.session.connection.identity.maxMsgTimeout
  return holder.isLapsed || time >= ends ? "LeaseLost" : undefined
}

/** Takes so many messages: fewer when none has come for some seconds. */
export const take = (holder: Holder, count: number): Effect.Effect<ReadonlyArray<Delivery.Delivery>> =>
  Effect.gen(function* () {
    const { arrived, held, session } = holder
    session.answer(`RDY ${held.size + count}\n`, ignore)
    let seen = 0
    for (let quiet = 0; arrived.length < count && isOpen(holder) && quiet < silence; quiet += pause) {
      yield* Effect.sleep(pause)
      if (arrived.length > seen) quiet = 0
      seen = arrived.length
    }
    return arrived.splice(0, count)
    // What is removed later makes no room for messages that were not asked for.
  }).pipe(Effect.ensuring(Effect.sync(() => holder.session.answer("RDY 0\n", ignore))))

/**
 * Waits until nsqd has handled all commands. Returns the ids that it refused, and why it may not have handled all. A
 * connection on which it does not answer is lost.
 */
const handled = ({ env, fences, queue, session }: Holder) => {
  const { requestTimeout } = env.settings
  const context = { operation: "browse", queue, node: session.node.name }
  const refused = new Set<string>()
  const answer = Effect.callback<unknown>((resume) => {
    const end: Fence["end"] = (error) => resume(Effect.succeed(error))
    fences.push({ refused, end })
    session.answer(`TOUCH ${fence}\n`, (error) => error && end(error))
  })
  const late = Effect.sync(() => session.connection.destroy(timedOut(context, requestTimeout)))
  const lost = Effect.sleep(requestTimeout).pipe(Effect.andThen(late), Effect.andThen(Effect.never))
  return Effect.map(Effect.raceFirst(answer, lost), (error) => ({
    refused,
    error: error === undefined ? undefined : toBrokerError(error, context)
  }))
}

/** Extends all leases. */
export const touch = (holder: Holder): Effect.Effect<unknown> =>
  Effect.suspend(() => {
    for (const receipt of holder.held.values()) holder.isLapsed ||= !holder.session.touch(receipt)
    return handled(holder)
  })

/** Removes messages of this holder, and returns those that are not known to be removed. */
export const remove = (
  holder: Holder,
  deliveries: ReadonlyArray<Delivery.Delivery>
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.suspend(() => {
    const { held, queue, session } = holder
    const taken = new Set(deliveries.map(receiptOf).filter(session.take))
    for (const { id } of taken) {
      held.delete(id)
      session.answer(`FIN ${id}\n`, ignore)
    }
    return Effect.map(handled(holder), ({ error, refused }) =>
      deliveries.flatMap((delivery): ReadonlyArray<Broker.SettleFailure> => {
        const receipt = receiptOf(delivery)
        if (!taken.has(receipt) || refused.has(receipt.id)) return [gone(queue, delivery)]
        return error === undefined ? [] : [{ delivery, error, fate: "unknown" }]
      })
    )
  })

/** Returns all messages and ends the connection. What is under way until then is returned as it comes. */
export const giveBack = ({ held, session }: Holder): Effect.Effect<void> =>
  Effect.suspend(() => {
    held.clear()
    return Effect.timeoutOrElse(Effect.promise(session.close), {
      duration: closeTimeout,
      orElse: () => Effect.sync(session.connection.end)
    })
  })
