/** The session of a look: the messages that it has, and how it takes them. */
import type { LookPage } from "@requeue/core/adapter-kit"
import type { Declarer } from "../declare/declare.ts"
import type * as Client from "../client.ts"
import { type Decoded, toDelivery } from "../consume/toDelivery.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import * as Version from "../version.ts"

/** The broker's own. */
export interface Dependencies {
  /** The queue as it is, as far as it is known. */
  readonly found: (queue: string) => RabbitMqQueue
  readonly declarer: Pick<Declarer, "channel">
  /** Milliseconds that an answer of the server may take. */
  readonly requestTimeout: number
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
export interface Held {
  readonly message: Client.Incoming
  readonly decoded: Decoded
}

/** A channel that has messages until it closes, and how far it has come. */
export interface Session {
  readonly channel: Client.Channel
  readonly isOpen: () => boolean
  /** The delivery tag of the last message, those of a page that was left in the middle included. */
  last: number
  /** Whether the last message was given back before: the server shows those first. */
  isReturned: boolean
  /** Messages that waited at the beginning. */
  waiting: number
  /** How it takes messages. */
  readonly take: Take
  /** The delivery tags of the last messages of pages, which had a consumer each. */
  readonly ends: Array<number>
  /** The consumer that takes a page. */
  consumer: string | undefined
  /** The sizes of its pages, by those that were shown. */
  readonly pages: LookPage.LookPage
  /** Messages that were shown. */
  shown: number
  /** Messages that may have to be replaced, the oldest first. */
  kept: ReadonlyArray<Held>
  /** Bytes of all messages. */
  bytes: number
}

/** Whether each look brings the server nearer to giving a message up, so that all of them are kept. */
export const isCounted = (
  queue: string,
  { found, serverVersion }: Pick<Dependencies, "found" | "serverVersion">
): boolean => Version.countsReleases(found(queue).type === "quorum" ? "quorum" : "classic", serverVersion())

/** Reads a message as the next consumer would. */
export const read = (message: Client.Incoming, queue: string, { found, now, serverVersion }: Dependencies): Decoded =>
  toDelivery(message, { type: found(queue).type, serverVersion: serverVersion(), keepsNotBefore: false, now })

/** Milliseconds that no message comes, and between two questions. */
const silence = 500
const longestPause = 8

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

const note = (session: Session, { fields }: Client.Incoming): void => {
  session.last = fields.deliveryTag
  session.isReturned = fields.redelivered
}

/** Takes up to so many messages, the oldest first. */
export type Take = (
  session: Session,
  queue: string,
  wanted: number,
  env: Pick<Dependencies, "sleep">
) => Promise<ReadonlyArray<Client.Incoming>>

/**
 * Takes messages by one consumer, whose messages are answered by one frame and one command to the queue. Those of
 * `basic.get` have a consumer each: of more than 32 answers, a quorum queue that is left at once hears the first alone, and
 * takes the other messages for failed; and it takes messages back in another order.
 */
export const byConsumer: Take = async (session, queue, wanted, env) => {
  const { channel, isOpen } = session
  const messages: Array<Client.Incoming> = []
  let isCancelled = false
  await channel.prefetch(wanted)
  const { consumerTag } = await channel.consume(queue, (message) => {
    if (message === null) return void (isCancelled = true)
    messages.push(message)
    note(session, message)
  })
  session.consumer = consumerTag
  // Others may take some, or may be the only ones who get any.
  const isOver = () => isCancelled || !isOpen() || messages.length >= wanted
  for (let seen = -1; messages.length > seen && !isOver(); ) {
    seen = messages.length
    await until(silence, env, isOver)
  }
  session.consumer = undefined
  await channel.cancel(consumerTag)
  session.ends.push(session.last)
  return messages
}

/** Takes messages one by one, where no other consumer may be, or where another gets all. */
export const byGet: Take = async (session, queue, wanted) => {
  const messages: Array<Client.Incoming> = []
  while (messages.length < wanted) {
    const message = await session.channel.get(queue)
    if (message === false) break
    messages.push(message)
    note(session, message)
  }
  return messages
}
