/** One connection that holds the messages that nsqd has sent on it, until they are removed or returned. */
import type { Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Settings } from "../../NsqOptions.ts"
import * as Client from "../client.ts"
import * as Connection from "../connect/connection.ts"
import type { Node } from "../connect/nodes.ts"
import { receiptOf } from "../consume/receipt.ts"
import { Received } from "../consume/session.ts"
import { toDelivery, toFrame } from "../consume/toDelivery.ts"
import type { Queue } from "../names.ts"
import { gone } from "../settle/settle.ts"
import { type ErrorContext, refusedId, timedOut, toBrokerError } from "../toBrokerError.ts"

export interface HolderDependencies {
  readonly settings: Settings
  /** The lease that every nsqd is asked for, in milliseconds. */
  readonly messageTimeout: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}

export interface Holder {
  readonly queue: string
  readonly node: Node
  readonly topic: Queue
  readonly connection: Client.Connection
  readonly env: HolderDependencies
  /** When each message has arrived, in monotonic milliseconds, by its id; the oldest first. */
  readonly held: Map<string, number>
  /** Those of them that were not taken yet. */
  readonly arrived: Array<Delivery.Delivery>
  /** nsqd's refusals of removals, by the ids. */
  readonly refusals: Map<string, string>
  /** Called when nsqd has handled all commands that were written before; with an error when it may not have. */
  readonly fences: Array<(error?: BrokerError.BrokerError) => void>
  /** Whether nsqd has taken a message back. */
  isLapsed: boolean
  /** Whether it takes no more. */
  isClosing: boolean
}

/** Milliseconds that no message comes though some were counted, and between two looks at what has come. */
const silence = 3000
const shortestPause = 1
const longestPause = 16

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

const commands = (name: string, ids: Iterable<string>, rest = ""): string =>
  Array.from(ids, (id) => `${name} ${id}${rest}\n`).join("")

const contextOf = ({ node, queue }: Holder): ErrorContext => ({ operation: "browse", queue, node: node.name })

const receive = (holder: Holder, payload: Buffer): void => {
  const { arrived, connection, env, held, isClosing, node } = holder
  const frame = toFrame(payload)
  const { id } = frame
  if (isClosing) return connection.write(`REQ ${id} 0\n`, ignore)
  if (held.has(id)) {
    // nsqd has taken it back and sent it again.
    holder.isLapsed = true
    return
  }
  const [now, elapsed] = [env.now(), env.elapsed()]
  held.set(id, elapsed)
  const decoded = toDelivery(frame, { now, nsqdNow: node.clock.now(now, elapsed), due: undefined })
  arrived.push(new Received(decoded, frame, { session: holder, id }))
}

const refuse = (holder: Holder, text: string): void => {
  const id = refusedId(text) ?? ""
  if (id === fence) holder.fences.shift()?.()
  else if (holder.held.delete(id)) holder.isLapsed = true
  else holder.refusals.set(id, text)
}

/** Subscribes to a channel. nsqd sends nothing yet. */
export const open = (
  queue: string,
  { node, queue: topic }: { readonly node: Node; readonly queue: Queue },
  env: HolderDependencies
): Effect.Effect<Holder, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    const { messageTimeout, settings } = env
    const context = { operation: "browse", queue, node: node.name }
    let holder: Holder | undefined
    const on: Client.Listener = {
      message: (payload) => holder && receive(holder, payload),
      refused: (text) => holder && refuse(holder, text),
      closed: (error) => {
        for (const end of holder?.fences.splice(0) ?? []) end(toBrokerError(error, context))
      }
    }
    const request = { topic: topic.topic, channel: topic.channel, messageTimeout }
    return Effect.map(
      Connection.open(context, settings, (signal) => Client.subscribe(settings, node.address, request, on, signal)),
      (connection) => {
        const empty = {
          held: new Map(),
          arrived: [],
          refusals: new Map(),
          fences: [],
          isLapsed: false,
          isClosing: false
        }
        return (holder = { queue, node, topic, connection, env, ...empty })
      }
    )
  })

/** The holder of a delivery. */
export const of = ({ receipt }: Delivery.Delivery): Holder => (receipt as { readonly session: Holder }).session // `receive` has put it there.

/** How many more messages nsqd sends on the connection. */
export const room = ({ connection, held }: Holder): number => connection.identity.maxRdyCount - held.size

/** When the first message must be returned, in monotonic milliseconds. */
export const holdsUntil = ({ connection, held }: Holder): number =>
  (held.values().next().value ?? Number.POSITIVE_INFINITY) + safe * connection.identity.maxMsgTimeout

/** Takes up to so many messages: fewer when none has come for some seconds. */
export const take = (holder: Holder, count: number): Effect.Effect<ReadonlyArray<Delivery.Delivery>> =>
  Effect.gen(function* () {
    const { arrived, connection, env, held } = holder
    const { elapsed } = env
    if (arrived.length < count) connection.write(`RDY ${held.size + count - arrived.length}\n`, ignore)
    let [pause, seen, quiet] = [shortestPause, arrived.length, elapsed()]
    while (arrived.length < count && connection.isOpen() && !holder.isClosing && elapsed() - quiet < silence) {
      yield* Effect.sleep(pause)
      pause = Math.min(2 * pause, longestPause)
      if (arrived.length > seen) quiet = elapsed()
      seen = arrived.length
    }
    return arrived.splice(0, count)
    // What is removed later makes no room for messages that were not asked for.
  }).pipe(Effect.ensuring(Effect.sync(() => holder.connection.write("RDY 0\n", ignore))))

/** Writes commands, and waits until nsqd has handled them; returns why it may not have. */
const handled = (holder: Holder, text: string): Effect.Effect<BrokerError.BrokerError | undefined> => {
  const { connection, env, fences } = holder
  const { requestTimeout } = env.settings
  return Effect.callback<BrokerError.BrokerError | undefined>((resume) => {
    fences.push((error) => resume(Effect.succeed(error)))
    connection.write(`${text}TOUCH ${fence}\n`, ignore)
  }).pipe(
    Effect.timeoutOrElse({
      duration: Duration.millis(requestTimeout),
      orElse: () =>
        Effect.sync(() => {
          const late = timedOut(contextOf(holder), requestTimeout)
          connection.destroy(late)
          return late
        })
    })
  )
}

/** Extends all leases. A connection on which nsqd does not answer is lost. */
export const touch = (holder: Holder): Effect.Effect<unknown> =>
  Effect.suspend(() => handled(holder, commands("TOUCH", holder.held.keys())))

/** Removes messages of this holder, and returns those that are not known to be removed. */
export const remove = (
  holder: Holder,
  deliveries: ReadonlyArray<Delivery.Delivery>
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.suspend(() => {
    const { connection, held, queue, refusals } = holder
    const isOpen = connection.isOpen()
    const idOf = (delivery: Delivery.Delivery) => receiptOf(delivery).id
    const { false: lost = [], true: removing = [] } = Object.groupBy(deliveries, (delivery) =>
      isOpen && held.delete(idOf(delivery)) ? "true" : "false"
    )
    const failures = lost.map((delivery) => gone(queue, delivery, isOpen))
    if (removing.length === 0) return Effect.succeed(failures)
    for (const delivery of removing) refusals.delete(idOf(delivery))
    return Effect.map(handled(holder, commands("FIN", removing.map(idOf))), (error) => {
      for (const delivery of removing) {
        const refusal = refusals.get(idOf(delivery))
        if (refusal !== undefined) {
          failures.push({ delivery, error: toBrokerError(new Error(refusal), contextOf(holder)), fate: "gone" })
        } else if (error !== undefined) failures.push({ delivery, error, fate: "unknown" })
      }
      return failures
    })
  })

/** Returns all messages and ends the connection. What is under way until then is returned as it comes. */
export const giveBack = (holder: Holder): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { connection, held } = holder
    holder.isClosing = true
    connection.write(`RDY 0\n${commands("REQ", held.keys(), " 0")}`, ignore)
    held.clear()
    return Effect.tryPromise(connection.stop)
  }).pipe(Effect.timeout(closeTimeout), Effect.ignore, Effect.ensuring(Effect.sync(() => holder.connection.end())))
