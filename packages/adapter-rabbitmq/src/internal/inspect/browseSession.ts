/** The session of a browser: the messages that it holds, and how it takes them. */
import type { LookPage } from "@requeue/core/adapter-kit"
import type { Declarer } from "../declare/declare.ts"
import type * as Client from "../client.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import type { Publisher } from "../publish/publisher.ts"
import * as KeptBack from "../settle/keptBack.ts"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import * as Version from "../version.ts"
import type { Held, Holder, Line } from "./held.ts"

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

/** A channel that has messages until it closes, and how far it has come. */
export interface Session extends Holder {
  readonly queue: string
  readonly lost: Line["lost"]
  /** The sizes of held messages by their delivery tags, the oldest first. */
  readonly held: Map<number, number>
  /** The delivery tag of the last message. */
  last: number
  /** Whether the last message was returned before: the server shows those first. */
  isReturned: boolean
  /** Messages that waited at the beginning. */
  readonly waiting: number
  /** How it takes messages. */
  take: Take
  /** The delivery tags of the last messages of pages, which had a consumer each. */
  readonly ends: Array<number>
  /** Whether nobody waits for the page that it takes. */
  isLeft: boolean
  /** The sizes of its pages, by those that were shown. */
  readonly pages: LookPage.LookPage
  /** Messages that were taken and not shown yet, such as those of a page whose caller has gone. */
  readonly taken: Array<Client.Incoming>
  /** Shown messages that may have to be replaced, by their delivery tags, the oldest first. */
  readonly kept: Map<number, Held>
}

/** Whether each return brings the server nearer to giving a message up, so that all of them are kept. */
export const isCounted = (
  queue: string,
  { found, serverVersion }: Pick<Dependencies, "found" | "serverVersion">
): boolean => Version.countsReleases(found(queue).type === "quorum" ? "quorum" : "classic", serverVersion())

/** Reads a message as the next consumer would. */
export const read = (message: Client.Incoming, queue: string, { found, now, serverVersion }: Dependencies): Held => ({
  message,
  decoded: toDelivery(message, {
    type: found(queue).type,
    serverVersion: serverVersion(),
    keepsNotBefore: false,
    now
  })
})

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

const note = (session: Session, message: Client.Incoming): void => {
  const { content, fields } = message
  session.last = fields.deliveryTag
  session.isReturned = fields.redelivered
  session.held.set(fields.deliveryTag, content.length)
  session.taken.push(message)
}

/** Takes up to so many messages, the oldest first. */
export type Take = (session: Session, wanted: number, env: Pick<Dependencies, "sleep">) => Promise<void>

/**
 * Takes messages by one consumer, whose messages are answered by one frame and one command to the queue. Those of
 * `basic.get` have a consumer each: of more than 32 answers, a quorum queue that is left at once hears the first alone, and
 * takes the other messages for failed; and it takes messages back in another order.
 */
export const byConsumer: Take = async (session, wanted, env) => {
  const { channel, isOpen, last: before, queue } = session
  let count = 0
  let isCancelled = false
  await channel.prefetch(wanted)
  const { consumerTag } = await channel.consume(queue, (message) => {
    if (message === null) return void (isCancelled = true)
    count++
    note(session, message)
  })
  // Others may take some, or may be the only ones who get any.
  const isOver = () => isCancelled || session.isLeft || !isOpen() || count >= wanted
  for (let seen = -1; count > seen && !isOver(); ) {
    seen = count
    await until(silence, env, isOver)
  }
  await channel.cancel(consumerTag)
  if (session.last > before) session.ends.push(session.last)
}

/** Takes messages one by one, where no other consumer may be, or where another gets all. */
export const byGet = async (session: Session, wanted: number): Promise<void> => {
  for (let left = wanted; left > 0 && !session.isLeft; left--) {
    const message = await session.channel.get(session.queue)
    if (message === false) return
    note(session, message)
  }
}

/** Acknowledgements of messages of `basic.get` after which the queue is asked: it is sent 32 commands of a channel at a time. */
const few = 16

/** Acknowledgements that one {@link prove} proves. */
export const atOnce = ({ take }: Pick<Session, "take">): number => (take === byGet ? few : Number.POSITIVE_INFINITY)

/** Waits until the queue has carried out all acknowledgements. A message that it hands out meanwhile begins the next page. */
export const prove = async (session: Session, uniqueName: () => string): Promise<void> => {
  const { channel, queue, take } = session
  if (take === byGet) {
    const message = await channel.get(queue)
    return message === false ? undefined : note(session, message)
  }
  for (const message of await KeptBack.prove(channel, queue, uniqueName())) {
    note(session, message)
    session.ends.push(session.last)
  }
}
