/** One connection that holds the messages that nsqd has sent on it, until they are removed or returned. */
import { type Broker, type BrokerError, type Delivery } from "@requeue/core/adapter-kit"
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
import { refusedId, timedOut, toBrokerError } from "../toBrokerError.ts"

export interface HolderDependencies {
  readonly settings: Settings
  /** The lease that every nsqd is asked for, in milliseconds. */
  readonly messageTimeout: number
  /** Milliseconds since the epoch, and monotonic ones. */
  readonly now: () => number
  readonly elapsed: () => number
}

type Deliveries = ReadonlyArray<Delivery.Delivery>

export interface Holder {
  readonly node: Node
  readonly topic: Queue
  readonly isOpen: () => boolean
  /** How many messages it holds, and how many more nsqd sends on one connection. */
  readonly size: () => number
  readonly room: () => number
  /** How many of the held messages `take` has not returned yet. */
  readonly arrived: () => number
  /** When the first message must be returned, in monotonic milliseconds. */
  readonly holdsUntil: () => number
  /** Whether nsqd has taken a message back. */
  readonly isLapsed: () => boolean
  /** Returns up to so many messages: fewer when none has come for some seconds. */
  readonly take: (count: number) => Effect.Effect<Deliveries>
  /** Removes messages, and returns those that are not known to be removed. */
  readonly remove: (deliveries: Deliveries) => Effect.Effect<ReadonlyArray<Broker.SettleFailure>>
  /** Extends all leases. */
  readonly touch: () => void
  /** Returns all messages and ends the connection. */
  readonly giveBack: Effect.Effect<void>
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
 * An id that no message has. nsqd handles the commands of a connection in their order and refuses to touch this one, without
 * closing the connection: by then it has refused each earlier `FIN` that it did not carry out.
 * https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go
 */
const fence = "not-a-message-id"

const ignore = (): void => {}

const commands = (name: string, ids: Iterable<string>, rest = ""): string =>
  Array.from(ids, (id) => `${name} ${id}${rest}\n`).join("")

/** The holder that a delivery came from. */
export const of = ({ receipt }: Delivery.Delivery): Holder => (receipt as { readonly session: Holder }).session // It has put it there.

/** Subscribes to a channel. nsqd sends nothing yet. */
export const open = (
  queue: string,
  { node, queue: topic }: { readonly node: Node; readonly queue: Queue },
  { elapsed, messageTimeout, now, settings }: HolderDependencies
): Effect.Effect<Holder, BrokerError.BrokerError> => {
  const context = { operation: "browse", queue, node: node.name }
  /** When each message has arrived, the oldest first. */
  const held = new Map<string, number>()
  const arrived: Array<Delivery.Delivery> = []
  const refusals = new Map<string, string>()
  const fences: Array<(error?: BrokerError.BrokerError) => void> = []
  let isClosing = false
  let isLapsed = false

  const holding = (connection: Client.Connection): Holder => {
    const { requestTimeout } = settings
    const { maxMsgTimeout, maxRdyCount } = connection.identity

    /** Writes commands, and waits until nsqd has handled them. */
    const handled = (text: string): Effect.Effect<BrokerError.BrokerError | undefined> =>
      Effect.timeoutOrElse(
        Effect.callback<BrokerError.BrokerError | undefined>((resume) => {
          fences.push((error) => resume(Effect.succeed(error)))
          connection.write(`${text}TOUCH ${fence}\n`, ignore)
        }),
        {
          duration: Duration.millis(requestTimeout),
          orElse: () =>
            Effect.sync(() => {
              const late = timedOut(context, requestTimeout)
              // It holds messages that nobody can settle.
              connection.destroy(late)
              return late
            })
        }
      )

    const remove: Holder["remove"] = (deliveries) =>
      Effect.suspend(() => {
        const isOpen = connection.isOpen()
        const { false: lost = [], true: removing = [] } = Object.groupBy(deliveries, (delivery) =>
          isOpen && held.delete(receiptOf(delivery).id) ? "true" : "false"
        )
        const failures = lost.map((delivery) => gone(queue, delivery, isOpen))
        if (removing.length === 0) return Effect.succeed(failures)
        const ids = removing.map((delivery) => receiptOf(delivery).id)
        return Effect.map(handled(commands("FIN", ids)), (error) => [
          ...failures,
          ...removing.flatMap((delivery, index): ReadonlyArray<Broker.SettleFailure> => {
            const refusal = refusals.get(ids[index]!)
            refusals.delete(ids[index]!)
            if (refusal !== undefined)
              return [{ delivery, error: toBrokerError(new Error(refusal), context), fate: "gone" }]
            return error === undefined ? [] : [{ delivery, error, fate: "unknown" }]
          })
        ])
      })

    const take: Holder["take"] = (count) =>
      Effect.gen(function* () {
        if (arrived.length >= count) return arrived.splice(0, count)
        connection.write(`RDY ${held.size + count - arrived.length}\n`, ignore)
        let [pause, seen, quiet] = [shortestPause, arrived.length, elapsed()]
        while (arrived.length < count && connection.isOpen() && !isClosing && elapsed() - quiet < silence) {
          yield* Effect.sleep(pause)
          pause = Math.min(2 * pause, longestPause)
          if (arrived.length > seen) quiet = elapsed()
          seen = arrived.length
        }
        return arrived.splice(0, count)
        // What is removed later makes no room for messages that nobody has asked for.
      }).pipe(Effect.ensuring(Effect.sync(() => connection.write("RDY 0\n", ignore))))

    return {
      node,
      topic,
      isOpen: connection.isOpen,
      size: () => held.size,
      room: () => maxRdyCount - held.size,
      arrived: () => arrived.length,
      holdsUntil: () => (held.values().next().value ?? Number.POSITIVE_INFINITY) + safe * maxMsgTimeout,
      isLapsed: () => isLapsed,
      take,
      remove,
      touch: () => connection.write(commands("TOUCH", held.keys()), ignore),
      // What is under way until then is returned as it comes.
      giveBack: Effect.suspend(() => {
        isClosing = true
        connection.write(`RDY 0\n${commands("REQ", held.keys(), " 0")}`, ignore)
        held.clear()
        return Effect.tryPromise(connection.stop)
      }).pipe(Effect.timeout(closeTimeout), Effect.ignore, Effect.ensuring(Effect.sync(connection.end)))
    }
  }

  return Effect.suspend(() => {
    let opened: { readonly connection: Client.Connection; readonly holder: Holder } | undefined
    const on: Client.Listener = {
      message: (payload) => {
        if (opened === undefined) return
        const frame = toFrame(payload)
        const { id } = frame
        if (isClosing) return opened.connection.write(`REQ ${id} 0\n`, ignore)
        // It comes again when its lease has ended.
        if (held.has(id)) return void (isLapsed = true)
        held.set(id, elapsed())
        const decoded = toDelivery(frame, { now: now(), nsqdNow: node.clock.now(now(), elapsed()), due: undefined })
        arrived.push(new Received(decoded, frame, { session: opened.holder, id }))
      },
      refused: (text) => {
        const id = refusedId(text) ?? ""
        if (id === fence) return fences.shift()?.()
        if (held.delete(id)) isLapsed = true
        else refusals.set(id, text)
      },
      closed: (error) => {
        for (const end of fences.splice(0)) end(toBrokerError(error, context))
      }
    }
    const request = { topic: topic.topic, channel: topic.channel, messageTimeout }
    return Effect.map(
      Connection.open(context, settings, (signal) =>
        Client.subscribe(settings, node.address, request, on, signal)
      ),
      (connection) => {
        opened = { connection, holder: holding(connection) }
        return opened.holder
      }
    )
  })
}
