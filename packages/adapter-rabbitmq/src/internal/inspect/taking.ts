/** Takes the messages of a queue, and holds them until its channel is closed. */
import type { Channel, Incoming } from "../client.ts"
import { type Dependencies as Browsing, until } from "./browseSession.ts"

/** The broker's own. */
export interface Dependencies extends Pick<Browsing, "sleep"> {
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The messages that were taken. */
export interface Taken {
  readonly messages: ReadonlyArray<Incoming>
  /** Whether these are all that were there. */
  readonly isAll: boolean
}

/** The most messages, and about the most bytes, that are taken. */
const most = 10_000
const mostBytes = 64 * 1024 * 1024

/** Messages that a consumer may have: of those of the next one, it is known by then how large they may be. */
const portion = 500

/** Milliseconds for which messages are taken at most, since those that become due wait meanwhile. */
const takeTimeout = 2000

/** How often in a row a queue must say that it has nothing more, since its last messages may be on their way. */
const enough = 3

/** Takes up to `limit` messages, the oldest first. */
export const take = async (
  channel: Channel,
  queue: string,
  limit: number,
  { now, sleep }: Dependencies
): Promise<Taken> => {
  const messages: Array<Incoming> = []
  const consumers: Array<string> = []
  let bytes = 0
  let isCancelled = false
  const { messageCount } = await channel.checkQueue(queue)
  const wanted = Math.min(messageCount, most, limit)
  const end = now() + takeTimeout
  const isOver = () => isCancelled || messages.length >= wanted || bytes >= mostBytes || now() >= end

  let [seen, empty] = [0, 0]
  /** Some may be due by now, and gone. */
  const isEmpty = async () => {
    const hasNone = (await channel.checkQueue(queue)).messageCount === 0 && messages.length === seen
    seen = messages.length
    empty = hasNone ? empty + 1 : 0
    return empty >= enough
  }

  while (!isOver() && empty < enough) {
    const goal = Math.min(wanted, messages.length + portion)
    await channel.prefetch(goal - messages.length)
    const { consumerTag } = await channel.consume(queue, (message) => {
      if (message === null) return void (isCancelled = true)
      messages.push(message)
      bytes += message.content.length
    })
    consumers.push(consumerTag)
    await until(takeTimeout, { sleep }, async () => isOver() || messages.length >= goal || (await isEmpty()))
  }
  const left = await channel.checkQueue(queue)
  await Promise.all(consumers.map((tag) => channel.cancel(tag)))
  const isWhole = messages.length >= messageCount || left.messageCount === 0
  // Somebody else who looks, or moves messages on, has some.
  return { messages, isAll: isWhole && left.consumerCount <= consumers.length }
}
