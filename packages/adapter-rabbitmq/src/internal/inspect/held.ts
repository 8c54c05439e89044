/** Messages that a browser holds on a channel, and their removal. */
import { type Broker, BoundedMap, BrokerError, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Client from "../client.ts"
import { request } from "../connect/request.ts"
import { identify } from "../consume/identity.ts"
import * as Originals from "../consume/originals.ts"
import type { Decoded } from "../consume/toDelivery.ts"
import { toNative } from "../consume/toNative.ts"
import type { Declarer } from "../declare/declare.ts"
import { toBrokerError } from "../toBrokerError.ts"
import * as Wire from "../wire.ts"

/** A message that is held, and what it says. */
export interface Held {
  readonly message: Client.Incoming
  readonly decoded: Decoded
}

/** A channel that holds messages. */
export interface Holder {
  readonly channel: Client.Channel
  /** Whether it still holds them. */
  readonly isOpen: () => boolean
  /** Whether it holds the message with this delivery tag. */
  readonly holds: (tag: number) => boolean
  /** Must be called before a message is acknowledged; returns whether it was held. */
  readonly release: (tag: number) => boolean
  /** The delivery tags of messages that were acknowledged, and of which it is not known whether the queue has heard it. */
  readonly unproven: Set<number>
  /** Runs one sequence of requests after the other. */
  readonly turn: <A>(run: () => Promise<A>) => Promise<A>
  /** Waits until the queue has carried out acknowledgements. */
  readonly prove: () => Promise<void>
  /** Acknowledgements that one `prove` proves. */
  readonly atOnce: () => number
}

/** A channel of a browser. */
export interface Line {
  readonly channel: Client.Channel
  readonly isOpen: () => boolean
  /** The error of a channel that was lost with what it held. Default: the server's words for its end. */
  readonly lost: (cause?: unknown) => BrokerError.BrokerError
}

/** Opens a channel that nobody else uses; it closes with the scope. */
export const line = (
  { declarer }: { readonly declarer: Pick<Declarer, "channel"> },
  queue: string
): Effect.Effect<Line, BrokerError.BrokerError, Scope.Scope> =>
  Effect.map(declarer.channel("browse", queue), (channel) => {
    let isOpen = true
    let words: unknown = "channel closed"
    channel.on("error", (error) => (words = error))
    channel.on("close", () => (isOpen = false))
    const lost = (cause: unknown = words): BrokerError.BrokerError => {
      const error = toBrokerError(cause, { operation: "browse", queue })
      const { broker, detail, operation, remedy } = error
      // Nothing is back where the queue is gone.
      if (["ConnectionLost", "LeaseLost", "QueueMissing"].includes(error.reason)) return error
      return new BrokerError.BrokerError({ broker, operation, queue, reason: "LeaseLost", detail, remedy })
    }
    return { channel, isOpen: () => isOpen, lost }
  })

/** A queue of functions, each of which begins when the one before has ended. */
export const turns = (): Holder["turn"] => {
  let last: Promise<unknown> = Promise.resolve()
  return (run) => {
    const next = last.then(run, run)
    last = next
    return next
  }
}

/** By what a browsed delivery is removed. */
interface Receipt {
  readonly holder: Holder
  readonly tag: number
  /** The name of this copy; `undefined` for a foreign message. */
  readonly name: string | undefined
}

export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // The core returns our own.

/** The delivery as the next consumer would see it. A copy of it keeps the properties of the message. */
export const shown = (holder: Holder, { decoded, message }: Held, queue: string): Delivery.Delivery => {
  const { attempts, body, headers, metadata, redelivered, unreadable } = decoded
  Originals.note(body, Wire.propertiesOf(message))
  return {
    body,
    headers,
    attempts,
    metadata,
    redelivered,
    unreadable,
    get native() {
      return toNative(Wire.propertiesOf(message), metadata.deadLetter?.queue ?? queue)
    },
    receipt: {
      holder,
      tag: message.fields.deliveryTag,
      name: identify(message.content, message.properties)
    } satisfies Receipt
  }
}

const gone = (queue: string, delivery: Delivery.Delivery): Broker.SettleFailure => ({
  delivery,
  error: new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "browse",
    queue,
    reason: "LeaseLost",
    detail: "the message is not held any more: it was removed before, or the server has it back"
  }),
  fate: "gone"
})

/** Acknowledges messages, and waits until the queue has carried it out. */
export const acknowledge = async ({ atOnce, channel, prove }: Holder, tags: ReadonlyArray<number>): Promise<void> => {
  const step = atOnce()
  for (let from = 0; from === 0 || from < tags.length; from += step) {
    const [first, ...others] = tags.slice(from, from + step)
    if (first !== undefined) Client.ackEach(channel, [first, ...others])
    await prove()
  }
}

/** Removes messages, and returns those that are not known to be removed. */
export const remove = (
  holder: Holder | undefined,
  deliveries: ReadonlyArray<Delivery.Delivery>,
  queue: string,
  millis: number
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.suspend(() => {
    const tagOf = (delivery: Delivery.Delivery) => receiptOf(delivery).tag
    const isHeld = (delivery: Delivery.Delivery): boolean =>
      receiptOf(delivery).holder === holder &&
      holder.isOpen() &&
      (holder.holds(tagOf(delivery)) || holder.unproven.has(tagOf(delivery)))
    const removable = deliveries.filter(isHeld)
    const failures = deliveries.filter((delivery) => !isHeld(delivery)).map((delivery) => gone(queue, delivery))
    if (holder === undefined || removable.length === 0) return Effect.succeed(failures)
    const tags = removable.map(tagOf)
    const written = tags.filter(holder.release)
    for (const tag of tags) holder.unproven.add(tag)
    const run = () => holder.turn(() => acknowledge(holder, written))
    return Effect.match(request({ operation: "browse", queue }, millis, run), {
      onSuccess: () => {
        for (const tag of tags) holder.unproven.delete(tag)
        return failures
      },
      onFailure: (cause) => [
        ...failures,
        ...removable.map((delivery) => ({ delivery, error: cause, fate: "unknown" as const }))
      ]
    })
  })

/** Names that are remembered. */
const limit = 20_000

/** Names of copies over all openings of a queue. */
export interface Names {
  /** Must be called with each message that is shown, and with the number of the opening. */
  readonly shown: (name: string, opening: number, isFirst: boolean) => void
  /** Whether more than one message has this name, so that it names none. */
  readonly isRepeated: (name: string) => boolean
}

/**
 * Remembers names. One opening shows each message once, so that a name that it shows twice is that of two messages; so is one
 * that was shown before and that the server now hands out for the first time.
 */
export const names = (): Names => {
  const all = BoundedMap.make<{ readonly opening: number; readonly isRepeated: boolean }>(limit)
  return {
    shown: (name, opening, isFirst) => {
      const known = all.get(name)
      const isRepeated = known !== undefined && (known.isRepeated || isFirst || known.opening === opening)
      all.set(name, { opening, isRepeated })
    },
    isRepeated: (name) => all.get(name)?.isRepeated === true
  }
}
