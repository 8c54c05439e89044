/** Looks at the waiting messages of a queue, and leaves them there, in their order. */
import type { BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import * as Client from "../client.ts"
import { givenUp } from "../consume/givenUp.ts"
import { type Decoded, toDelivery } from "../consume/toDelivery.ts"
import { toNative } from "../consume/toNative.ts"
import type { Declarer } from "../declare/declare.ts"
import { again } from "../publish/again.ts"
import type { Publisher } from "../publish/publisher.ts"
import { direct, toPublication } from "../publish/toPublication.ts"
import * as Wire from "../wire.ts"

/** The broker's own. */
export interface Dependencies {
  /** The queue as it is, as far as it is known. */
  readonly found: (queue: string) => RabbitMqQueue
  readonly declarer: Pick<Declarer, "onChannel">
  readonly publisher: Pick<Publisher, "submit">
  readonly serverVersion: () => string
  readonly uniqueName: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** The start of the adapter's names. */
  readonly own: string
  /** Resolves after so many milliseconds. */
  readonly sleep: (millis: number) => Promise<void>
}

/** A message that is held, and what it says. */
interface Held {
  readonly message: Client.Incoming
  readonly decoded: Decoded
}

/** The most messages that are replaced at a time, beside those that are looked at. */
const maxReplaced = 10_000

/** Milliseconds that returned messages may take to be counted again, that no message comes, and between two questions. */
const recountTimeout = 1000
const silence = 500
const longestPause = 8

/**
 * Whether the server may be about to give a message up for being looked at: half of its limit is used. Where nobody has
 * told the limit, no message is given back twice.
 */
const isNear = ({ returns }: Decoded, { deliveryLimit }: RabbitMqQueue): boolean =>
  returns >= (deliveryLimit === undefined ? 1 : deliveryLimit / 2)

/**
 * The message that takes the place of another. What a work queue has counted, it goes on telling, and a letter of the
 * server's says itself what the server tells of it.
 */
const successor = (queue: string, { decoded, message }: Held, { now, own, uniqueName }: Dependencies) => {
  const { body, formerReturns, headers, isOurs, isUncounted, metadata, returns } = decoded
  const isTold = isUncounted && givenUp(message, 0, now) === undefined
  if (isTold || !isOurs) return again(queue, message, uniqueName())
  const copy = { copy: uniqueName(), own, returns: isUncounted ? undefined : (formerReturns ?? 0) + returns }
  return toPublication({ queue, body, headers, delay: 0, metadata }, direct(queue), copy, Wire.propertiesOf(message))
}

/** Puts a successor behind all others for each message, in order, and takes out those whose successor is confirmed. */
const replace = async (
  channel: Client.Channel,
  queue: string,
  held: ReadonlyArray<Held>,
  env: Dependencies
): Promise<void> => {
  const errors = await Promise.all(
    held.map((one) => new Promise((resolve) => void env.publisher.submit(successor(queue, one, env), resolve)))
  )
  if (errors.every((error) => error === undefined)) return channel.ackAll()
  held.forEach(({ message: { fields } }, at) => {
    if (errors[at] === undefined) Client.ack(channel, fields.deliveryTag, false)
    else Client.requeue(channel, fields.deliveryTag, "Nack")
  })
}

/** The most messages of one answer that a quorum queue before 4.0 takes back in their order. */
const inOrder = 32

/** Gives all messages back. */
const giveBack = (channel: Client.Channel, held: ReadonlyArray<Held>): void => {
  for (let end = inOrder; end - inOrder < held.length; end += inOrder)
    Client.requeue(channel, (held[end - 1] ?? held.at(-1)!).message.fields.deliveryTag, "NackAll")
}

/** Asks until the answer is yes or the time is over. Most answers are there within a millisecond or two. */
export const until = async (
  millis: number,
  { sleep }: Pick<Dependencies, "sleep">,
  isSo: () => boolean | Promise<boolean>
): Promise<void> => {
  let pause = 1
  for (let waited = 0; waited < millis && !(await isSo()); waited += pause) {
    await sleep(pause)
    pause = Math.min(2 * pause, longestPause)
  }
}

/** Takes up to `limit` messages, the oldest first. */
type Take = (
  channel: Client.Channel,
  queue: string,
  limit: number,
  env: Pick<Dependencies, "sleep">
) => Promise<ReadonlyArray<Client.Incoming>>

/**
 * Takes messages by one consumer, whose messages are answered by one frame and one command to the queue. Those of
 * `basic.get` have a consumer each: of more than 32 answers, a quorum queue that is left at once hears the first alone, and
 * takes the other messages for failed; and it takes messages back in another order.
 */
const byConsumer: Take = async (channel, queue, limit, env) => {
  const messages: Array<Client.Incoming> = []
  const { messageCount } = await channel.checkQueue(queue)
  const wanted = Math.min(messageCount, limit)
  if (wanted === 0) return messages
  let isCancelled = false
  await channel.prefetch(wanted)
  const { consumerTag } = await channel.consume(queue, (message) => {
    if (message === null) isCancelled = true
    else messages.push(message)
  })
  // Others may take some, or may be the only ones who get any.
  const isOver = () => isCancelled || messages.length >= wanted
  for (let seen = -1; messages.length > seen && !isOver(); ) {
    seen = messages.length
    await until(silence, env, isOver)
  }
  await channel.cancel(consumerTag)
  return messages
}

/** Takes messages one by one, where no other consumer may be, or where another gets all. */
const byGet: Take = async (channel, queue, limit) => {
  const messages: Array<Client.Incoming> = []
  while (messages.length < limit) {
    const message = await channel.get(queue)
    if (message === false) break
    messages.push(message)
  }
  return messages
}

/** Takes messages, and puts them back in the order in which they were. */
const look = async (
  channel: Client.Channel,
  queue: string,
  limit: number,
  env: Dependencies,
  take: Take = byConsumer
): Promise<ReadonlyArray<Held>> => {
  const found = env.found(queue)
  const source = { type: found.type, serverVersion: env.serverVersion(), keepsNotBefore: false, now: env.now }
  const hold = (message: Client.Incoming): Held => ({ message, decoded: toDelivery(message, source) })
  const taken = await take(channel, queue, limit, env)
  const held = (taken.length > 0 ? taken : await byGet(channel, queue, limit, env)).map(hold)
  if (held.some(({ decoded }) => isNear(decoded, found))) {
    // All of the queue, so that it keeps its order.
    const others = await take(channel, queue, maxReplaced, env)
    await replace(channel, queue, [...held, ...others.map(hold)], env)
  } else giveBack(channel, held)
  // A quorum queue takes messages back in its own time: a redrive that begins right after a look would count too few.
  if (held.length > 0)
    await until(recountTimeout, env, async () => (await channel.checkQueue(queue)).messageCount >= held.length)
  return held
}

/** Waits until a queue has taken back what was given back: a quorum queue does that in its own time. */
export const takenBack = (
  env: Pick<Dependencies, "declarer" | "sleep">,
  queue: string
): Effect.Effect<void, BrokerError.BrokerError> =>
  env.declarer.onChannel("peek", queue, (channel) =>
    until(recountTimeout, env, async () => (await channel.checkQueue(queue)).consumerCount === 0)
  )

/** Up to `limit` messages of a queue that exists, the oldest first. */
export const peek = (
  queue: string,
  limit: number,
  env: Dependencies
): Effect.Effect<ReadonlyArray<Delivery.Delivery>, BrokerError.BrokerError> => {
  const by = (take?: Take) => env.declarer.onChannel("peek", queue, (channel) => look(channel, queue, limit, env, take))
  return Effect.map(
    // Somebody else consumes it exclusively.
    Effect.catchIf(
      by(),
      ({ reason }) => reason === "AccessRefused",
      () => by(byGet)
    ),
    (seen) =>
      seen.map(({ decoded: { attempts, body, headers, metadata, redelivered }, message }) => {
        const native = toNative(Wire.propertiesOf(message), metadata.deadLetter?.queue ?? queue)
        return { body, headers, attempts, metadata, redelivered, native, receipt: undefined }
      })
  )
}
