/** A session without credit: requests messages page by page, and holds them until they are removed or returned. */
import { type Broker, type Delivery, Metadata } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import { Answered, type Receipt, receiptOf } from "../consume/receipt.ts"
import type { Session } from "../consume/session.ts"
import * as Sessions from "../consume/sessions.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import { gone } from "../settle/settle.ts"
import { timedOut, toBrokerError } from "../toBrokerError.ts"
import type { Place } from "./places.ts"

export interface HolderDependencies extends Sessions.SessionsDependencies {
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface Holder {
  readonly queue: string
  readonly session: Session
  readonly env: HolderDependencies
  /** The receipts of its messages, keyed by message id, oldest first. */
  readonly held: Map<string, Receipt>
  /** Messages that were not shown yet. */
  readonly arrived: Array<Delivery.Delivery>
  /** Opens when a message arrives. */
  readonly arrival: Latch.Latch
  /** The ids of messages that nsqd has requeued. */
  readonly lapsed: Set<string>
  /** Called when nsqd refuses a `FIN`. */
  readonly refusals: WeakMap<Answered["delivery"], () => void>
}

/** A page ends after this time without a message. */
const silence = Duration.seconds(3)

/** Milliseconds that nsqd may take to requeue all messages of a connection. */
const closeTimeout = 30_000

/** The part of the longest lease during which messages are held. */
const safe = 0.9

/** Counts the fences of this process. */
let fences = 0

const ignore = (): void => {}

/** Subscribes to a channel. nsqd sends nothing yet. */
export const open = (queue: string, { node, queue: topic }: Place, env: HolderDependencies) =>
  Effect.suspend(() => {
    const { elapsed, now } = env
    const [held, lapsed]: [Holder["held"], Holder["lapsed"]] = [new Map(), new Set()]
    const arrived: Array<Delivery.Delivery> = []
    const arrival = Latch.makeUnsafe()
    const refusals: Holder["refusals"] = new WeakMap()
    const subscriber: Parameters<typeof Sessions.connect>[0] = {
      queue,
      sessions: new Set(),
      decode: (frame) => toDelivery(frame, { now: now(), nsqdNow: node.clock.now(now(), elapsed()), due: undefined }),
      isFinished: () => false,
      onDelivery: (delivery) => {
        const receipt = receiptOf(delivery)
        if (held.has(receipt.id)) lapsed.add(receipt.id)
        held.set(receipt.id, receipt)
        arrived.push(delivery)
        arrival.openUnsafe()
      },
      onRefused: ({ delivery }) => refusals.get(delivery)?.()
    }
    return Effect.map(
      Sessions.connect(subscriber, env, { node, topic, isAgain: false }),
      (session): Holder => ({ queue, session, env, held, arrived, arrival, lapsed, refusals })
    )
  })

/** Returns how many more messages nsqd can send on this connection. */
export const room = ({ held, session }: Holder): number => session.connection.identity.maxRdyCount - held.size

/** Returns why other consumers may have held messages at `time`. */
export const lossAt = ({ held, lapsed, session }: Holder, time: number): "ConnectionLost" | "LeaseLost" | undefined => {
  const [first] = held.values()
  if (first === undefined) return undefined
  if (!session.isOpen()) return "ConnectionLost"
  const end = first.receivedAt + safe * session.connection.identity.maxMsgTimeout
  return lapsed.size > 0 || time >= end ? "LeaseLost" : undefined
}

/** Takes `count` messages; fewer if none has arrived for some seconds. */
export const take = ({ arrival, arrived, held, session }: Holder, count: number) =>
  Effect.gen(function* () {
    session.ready(held.size + count)
    const changed = Effect.raceFirst(arrival.await, Deferred.await(session.gone))
    while (arrived.length < count && session.isOpen()) {
      arrival.closeUnsafe()
      if (Option.isNone(yield* Effect.timeoutOption(changed, silence))) break
    }
    return arrived.splice(0, count)
    // Otherwise removed messages would make room for unrequested ones.
  }).pipe(Effect.ensuring(Effect.sync(() => session.ready(0))))

/**
 * Finishes messages, and waits until nsqd has handled all commands. Returns the ids that nsqd refused, and an error if
 * nsqd may not have handled all. Destroys the connection if nsqd does not answer.
 *
 * nsqd answers a `FIN` only if it refuses it, and handles the commands of a connection in order. So the last command,
 * the fence, finishes a message that does not exist: nsqd refuses it, and keeps the connection.
 * https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go
 */
const finish = ({ env, queue, refusals, session }: Holder, ids: ReadonlyArray<string>) => {
  const { requestTimeout } = env.settings
  const context = { operation: "browse", queue, node: session.node.name }
  const refused = new Set<string>()
  const write = (id: string, onRefused: () => void): void => {
    const answered = new Answered({ attempts: 0, metadata: Metadata.make(id, 0) }, "Ack")
    refusals.set(answered.delivery, onRefused)
    session.answer(`FIN ${id}\n`, ignore, answered)
  }
  for (const id of ids) write(id, () => refused.add(id))
  const handled = Effect.callback<undefined>((resume) =>
    write(String(++fences).padStart(16, "-"), () => resume(Effect.undefined))
  )
  const lost = Effect.map(Deferred.await(session.gone), () =>
    toBrokerError(new Error("the connection was lost"), context)
  )
  return Effect.raceFirst(handled, lost).pipe(
    Effect.timeoutOrElse({
      duration: requestTimeout,
      orElse: () => {
        const late = timedOut(context, requestTimeout)
        session.connection.destroy(late)
        return Effect.succeed(late)
      }
    }),
    Effect.map((error) => ({ refused, error }))
  )
}

/** Extends all leases. */
export const touch = (holder: Holder) =>
  Effect.suspend(() => {
    const { held, lapsed, session } = holder
    for (const receipt of held.values()) if (!session.touch(receipt) && !session.take(receipt)) lapsed.add(receipt.id)
    return finish(holder, [])
  })

/** Removes messages of this holder, and returns those that may not be removed. */
export const remove = (holder: Holder, deliveries: ReadonlyArray<Delivery.Delivery>) =>
  Effect.suspend(() => {
    const { held, queue, session } = holder
    const taken = new Set(deliveries.map(receiptOf).filter(session.take))
    const ids = Array.from(taken, ({ id }) => id)
    for (const id of ids) held.delete(id)
    return Effect.map(finish(holder, ids), ({ error, refused }) =>
      deliveries.flatMap((delivery): ReadonlyArray<Broker.SettleFailure> => {
        const receipt = receiptOf(delivery)
        if (!taken.has(receipt) || refused.has(receipt.id)) return [gone(queue, delivery)]
        return error === undefined ? [] : [{ delivery, error, fate: "unknown" }]
      })
    )
  })

/** Returns all messages and ends the connection. Messages that arrive meanwhile are also returned. */
export const giveBack = ({ held, session }: Holder) =>
  Effect.suspend(() => {
    held.clear()
    return Effect.timeoutOrElse(Effect.promise(session.close), {
      duration: closeTimeout,
      orElse: () => Effect.sync(session.connection.end)
    })
  })
