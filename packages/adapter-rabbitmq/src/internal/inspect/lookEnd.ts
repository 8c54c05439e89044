/** The end of a look: all that it has goes back in its order, and what the server is about to give up is replaced. */
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import * as Client from "../client.ts"
import { givenUp } from "../consume/givenUp.ts"
import type { Decoded } from "../consume/toDelivery.ts"
import { again } from "../publish/again.ts"
import { direct, toPublication } from "../publish/toPublication.ts"
import * as Version from "../version.ts"
import * as Wire from "../wire.ts"
import { byConsumer, type Dependencies, type Held, isCounted, read, type Session, until } from "./lookSession.ts"

/** The most messages that are replaced with a look, where every one may have to be. */
export const maxReplaced = 10_000

/** Milliseconds that returned messages may take to be counted again, at least, and for each of them. */
export const recountTimeout = 1000
const recountEach = 0.1
/**
 * Whether the server may be about to give a message up for being looked at: half of its limit is used. Where nobody has
 * told the limit, no message is given back twice.
 */
export const isNear = ({ returns }: Decoded, { deliveryLimit }: RabbitMqQueue): boolean =>
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

/**
 * Answers that may be under way. A server that has more of them from one channel sorts them by consumers.
 * https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_fifo_client.erl
 */
const maxAnswers = 16

/** The delivery tags up to which one answer each gives back all: none is for messages of two consumers. */
const answers = ({ ends, last }: Session, serverVersion: string): ReadonlyArray<number> => {
  const size = Version.isAtLeast(serverVersion, "4.0") ? Number.POSITIVE_INFINITY : inOrder
  const tags: Array<number> = []
  let from = 0
  for (const end of [...ends, last]) {
    for (let tag = from + size; tag < end; tag += size) tags.push(tag)
    if (end > from) tags.push(end)
    from = end
  }
  return tags
}

/** Gives all messages back, in their order. */
const giveBack = async (session: Session, queue: string, env: Dependencies): Promise<void> => {
  const { channel } = session
  const count = async () => (await channel.checkQueue(queue)).messageCount
  const tags = answers(session, env.serverVersion())
  const others = tags.length > maxAnswers ? await count() : 0
  for (const [at, tag] of tags.entries()) {
    Client.requeue(channel, tag, "NackAll")
    if (at % maxAnswers === maxAnswers - 1)
      await until(recountTimeout, env, async () => (await count()) >= others + tag)
  }
}

/** Milliseconds for which messages are taken for the sake of the order. */
const passing = 5000

/**
 * Takes what is left of the messages that were given back before. A quorum queue hands those out first, and puts what is given
 * back behind them: what a look has shown would come after them. Given back together, they keep their order.
 * https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_fifo.erl
 */
const passReturned = async (session: Session, queue: string, env: Dependencies): Promise<void> => {
  const end = env.now() + passing
  while (session.isReturned && session.last < session.waiting && env.now() < end) {
    const before = session.last
    await session.take(session, queue, Math.min(session.pages.size(), session.waiting - before), env)
    if (session.last === before) return
  }
}

/** Gives all back, or replaces those that the server is about to give up. */
export const end = async (session: Session, queue: string, env: Dependencies): Promise<void> => {
  const { channel, consumer, isOpen, kept, shown } = session
  if (!isOpen()) return
  if (consumer !== undefined) await channel.cancel(consumer)
  const { last } = session
  if (last === 0) return
  const found = env.found(queue)
  const near = kept.filter(({ decoded }) => isNear(decoded, found))
  if (near.length === 0) {
    if (!isCounted(queue, env)) await passReturned(session, queue, env)
    await giveBack(session, queue, env)
  } else if (kept.length === shown && shown === last) {
    // All of the queue, so that it keeps its order.
    const others = await byConsumer(session, queue, maxReplaced, env)
    const rest = others.map((message): Held => ({ message, decoded: read(message, queue, env) }))
    await replace(channel, queue, [...kept, ...rest], env)
  } else {
    await replace(channel, queue, near, env)
    await giveBack(session, queue, env)
  }
  // A quorum queue takes messages back in its own time: a redrive that begins right after a look would count too few.
  await until(recountTimeout + recountEach * session.last, env, async () => {
    const { messageCount } = await channel.checkQueue(queue)
    return messageCount >= session.last
  })
}
