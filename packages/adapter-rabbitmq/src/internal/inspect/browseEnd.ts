/** The end of a browser: all that it holds goes back in its order, and what the server is about to give up is replaced. */
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import * as Client from "../client.ts"
import { givenUp } from "../consume/givenUp.ts"
import type { Decoded } from "../consume/toDelivery.ts"
import { again } from "../publish/again.ts"
import { direct, toPublication } from "../publish/toPublication.ts"
import * as Version from "../version.ts"
import * as Wire from "../wire.ts"
import { byConsumer, type Dependencies, isCounted, read, type Session, until } from "./browseSession.ts"
import { acknowledge, type Held } from "./held.ts"

/** The most messages that are replaced by one browser, where every one may have to be. */
export const maxReplaced = 10_000

/** Milliseconds that returned messages may take to be counted again, at least, and for each of them. */
export const recountTimeout = 1000
const recountEach = 0.1

/**
 * Whether the server may be about to give a message up for being browsed: half of its limit is used. Where nobody has
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
const replace = async (session: Session, held: ReadonlyArray<Held>, env: Dependencies): Promise<void> => {
  const errors = await Promise.all(
    held.map((one) => new Promise((resolve) => void env.publisher.submit(successor(session.queue, one, env), resolve)))
  )
  const confirmed = held.flatMap(({ message }, at) => (errors[at] === undefined ? [message.fields.deliveryTag] : []))
  for (const tag of confirmed) session.release(tag)
  // One answer for all needs no proof, which might take out a successor, and count as its return.
  if (session.held.size === 0) session.channel.ackAll()
  else if (confirmed.length > 0) await acknowledge(session, confirmed)
}

/** The most messages of one answer that a quorum queue before 4.0 takes back in their order. */
const inOrder = 32

/**
 * Answers that may be under way. A server that has more of them from one channel sorts them by consumers.
 * https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_fifo_client.erl
 */
const maxAnswers = 16

/** The numbers of messages up to which one answer each returns all: none is for messages of two consumers. */
const answers = (tags: ReadonlyArray<number>, ends: ReadonlyArray<number>, serverVersion: string) => {
  const most = Version.isAtLeast(serverVersion, "4.0") ? Number.POSITIVE_INFINITY : inOrder
  let [page, size] = [0, 0]
  return tags.flatMap((tag, at) => {
    while (page < ends.length && ends[page]! < tag) page++
    size++
    const next = tags[at + 1]
    const isLast = next === undefined || next > (ends[page] ?? Number.POSITIVE_INFINITY) || size === most
    if (isLast) size = 0
    return isLast ? [at + 1] : []
  })
}

/** Gives all messages back, in their order. */
const giveBack = async ({ channel, ends, held, queue }: Session, env: Dependencies): Promise<void> => {
  const count = async () => (await channel.checkQueue(queue)).messageCount
  const tags = [...held.keys()]
  const all = answers(tags, ends, env.serverVersion())
  const others = all.length > maxAnswers ? await count() : 0
  for (const [at, size] of all.entries()) {
    Client.requeue(channel, tags[size - 1]!, "NackAll")
    if (at % maxAnswers === maxAnswers - 1)
      await until(recountTimeout, env, async () => (await count()) >= others + size)
  }
}

/** Milliseconds for which messages are taken for the sake of the order. */
const passing = 5000

/**
 * Takes what is left of the messages that were given back before. A quorum queue hands those out first, and puts what is given
 * back behind them: what a browser has shown would come after them. Given back together, they keep their order.
 * https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_fifo.erl
 */
const passReturned = async (session: Session, env: Dependencies): Promise<void> => {
  const end = env.now() + passing
  while (session.isReturned && session.last < session.waiting && env.now() < end) {
    const before = session.last
    await session.take(session, Math.min(session.pages.size(), session.waiting - before), env)
    if (session.last === before) return
  }
}

/** Gives all back, or replaces those that the server is about to give up. */
export const end = async (session: Session, env: Dependencies): Promise<void> => {
  const { channel, held, isOpen, kept, queue } = session
  if (!isOpen() || held.size === 0) return
  /** Keeps messages that were taken and not shown. */
  const keep = (): void => {
    for (const message of session.taken.splice(0)) kept.set(message.fields.deliveryTag, read(message, queue, env))
  }
  keep()
  const found = env.found(queue)
  const near = [...kept.values()].filter(({ decoded }) => isNear(decoded, found))
  if (near.length > 0 && kept.size === held.size) {
    // All of the queue, so that it keeps its order.
    await byConsumer(session, maxReplaced, env)
    keep()
    await replace(session, [...kept.values()], env)
  } else if (near.length > 0) await replace(session, near, env)
  else if (!isCounted(queue, env)) await passReturned(session, env)
  const { size } = held
  await giveBack(session, env)
  // A quorum queue takes messages back in its own time: a redrive that begins right after a look would count too few.
  await until(recountTimeout + recountEach * size, env, async () => {
    const { messageCount } = await channel.checkQueue(queue)
    return messageCount >= size
  })
}
