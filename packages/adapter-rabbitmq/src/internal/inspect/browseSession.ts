/** The session of a browser: a channel that holds messages, and how it takes and acknowledges them. */
import type { BrokerError } from "@requeue/core/port"
import type { PageSize } from "@requeue/kit"
import type { Declarer } from "../declare/declare.ts"
import * as Client from "../client.ts"
import type { Decoded } from "../consume/toDelivery.ts"
import * as KeptBack from "../settle/flushPending.ts"

/** The broker's own. */
export interface Dependencies {
  readonly declarer: Pick<Declarer, "channel">
  /** Milliseconds that a response of the server may take. */
  readonly requestTimeout: number
  readonly serverVersion: () => string
  readonly uniqueName: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Resolves after this many milliseconds. */
  readonly sleep: (millis: number) => Promise<void>
}

/** A message and its delivery. */
export interface Content {
  readonly message: Client.Incoming
  readonly decoded: Decoded
}

/** A browsed queue, and how to treat its messages. */
export interface Source {
  readonly queue: string
  /** Whether its messages are delayed. They are taken ahead of the pages, and need no order. */
  readonly isDelayed: boolean
  /** Whether only the end of the channel returns them in time. */
  readonly closes: boolean
  /** Whether each return counts towards the delivery limit, so the browser keeps all messages. */
  readonly isCounted: boolean
  /** Reads a message as the next consumer would see it. */
  readonly read: (message: Client.Incoming) => Decoded
  /** Whether browsing has brought a message near the delivery limit. */
  readonly isNear: (content: Content) => boolean
  /** Publishes copies that replace messages, in order. Returns the error of each; `undefined` if it is confirmed. */
  readonly copy: (contents: ReadonlyArray<Content>) => Promise<ReadonlyArray<unknown>>
}

/** A held message. */
interface Held {
  /** The number of the consumer that took it. */
  readonly consumer: number
  /** Whether it was shown on a page and can be removed. */
  isShown: boolean
  /** `undefined` if it need not be replaced. */
  content: Content | undefined
}

/** A channel that holds messages until it ends, and its progress. */
export interface Session {
  readonly source: Source
  readonly channel: Client.Channel
  /** Whether the channel is open. */
  readonly isOpen: () => boolean
  /** The error of a channel that was lost with the messages that it held. */
  readonly lost: () => BrokerError.BrokerError
  /** Runs one sequence of requests after the other. */
  readonly turn: <A>(run: () => Promise<A>) => Promise<A>
  /** `leaving`: no caller waits for further messages. */
  state: "open" | "leaving" | "ended"
  /** How it takes messages. */
  way: Way
  /** The messages that it holds, by their delivery tags, the oldest first. */
  readonly held: Map<number, Held>
  /** The bytes of the held messages that may have to be replaced. */
  bytes: number
  /** Messages that were taken and not shown yet, such as those of a page whose caller has gone. */
  readonly taken: Array<Content>
  /** Whether it held too many messages at the last page to keep their copies. */
  isForgetting: boolean
  /** The delivery tags of acknowledged messages whose acknowledgements the queue may not have processed. */
  readonly unproven: Set<number>
  /** Whether the last message was returned before. The server delivers those first. */
  isReturned: boolean
  /** The number of its consumers so far. */
  consumers: number
  /** Computes page sizes from the messages shown so far. */
  readonly pages: PageSize.PageSize
  /** Whether the queue was empty at the last attempt. */
  isWhole: boolean
}

/** Drops the copies for replacing messages. */
export const forget = (session: Session, held: Held): void => {
  session.bytes -= held.content?.message.content.length ?? 0
  held.content = undefined
}

/** Must be called before a message is acknowledged; returns whether it was held. */
export const release = (session: Session, tag: number): boolean => {
  const held = session.held.get(tag)
  if (held !== undefined) forget(session, held)
  return session.held.delete(tag)
}

const longestPause = 8

/** Asks until the answer is yes or the time is over. Most answers take a millisecond or two. */
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
  const { consumers, held, source, taken } = session
  const content = { message, decoded: source.read(message) }
  session.isReturned = message.fields.redelivered
  session.bytes += message.content.length
  held.set(message.fields.deliveryTag, { consumer: consumers, isShown: false, content })
  taken.push(content)
}

/** Milliseconds without a message after which a queue counts as empty. Short, because held messages must not become late. */
const silence = { ready: 500, delayed: 50 }

/** Takes up to this many messages, the oldest first. */
export type Way = (session: Session, wanted: number, env: Pick<Dependencies, "sleep">) => Promise<void>

/**
 * Takes messages by one consumer. One frame and one command to the queue settle all of them. With `basic.get`, each message has a
 * separate consumer. If a channel closes at once after more than 32 such acknowledgements, a quorum queue processes only the first
 * and counts the other messages as failed, and it returns messages in another order.
 */
export const byConsumer: Way = async (session, wanted, env) => {
  const { channel, source } = session
  let count = 0
  let isCancelled = false
  session.consumers++
  await channel.prefetch(wanted)
  const { consumerTag } = await channel.consume(source.queue, (message) => {
    if (message === null) return void (isCancelled = true)
    count++
    note(session, message)
  })
  // Other consumers may receive some of the messages, or all.
  const isOver = () => isCancelled || session.state === "leaving" || !session.isOpen() || count >= wanted
  for (let seen = -1; count > seen && !isOver(); ) {
    seen = count
    await until(source.isDelayed ? silence.delayed : silence.ready, env, isOver)
  }
  await channel.cancel(consumerTag)
}

/** Takes messages one by one, if no other consumer is allowed or another one receives all. */
export const byGet = async (session: Session, wanted: number): Promise<void> => {
  for (let left = wanted; left > 0 && session.state !== "leaving"; left--) {
    const message = await session.channel.get(session.source.queue)
    if (message === false) return
    note(session, message)
  }
}

/** Takes messages until there are this many to show. */
export const take = async (session: Session, most: number, env: Pick<Dependencies, "sleep">): Promise<void> => {
  const { channel, held, source, taken } = session
  const count = () => channel.checkQueue(source.queue)
  const wanted = Math.min((await count()).messageCount, most - taken.length)
  if (wanted > 0) await session.way(session, wanted, env)
  if (wanted > 0 && held.size === 0 && session.way !== byGet) {
    // Another consumer may receive all messages.
    await byGet(session, wanted)
    if (held.size > 0) session.way = byGet
  }
  session.isWhole = false
  if (taken.length > 0) return
  const { consumerCount, messageCount } = await count()
  // Another browser, or a process that moves messages, may hold some of the delayed messages.
  const own = new Set([...held.values()].map(({ consumer }) => consumer)).size
  session.isWhole = messageCount === 0 && (!source.isDelayed || consumerCount <= own)
}

/** Acknowledgements of `basic.get` messages after which to wait for the queue, which receives 32 commands of a channel at a time. */
const few = 16

/**
 * Acknowledges messages that are no longer held, and waits until the queue has processed that. A message that arrives meanwhile
 * starts the next page.
 */
export const acknowledge = async (
  session: Session,
  tags: ReadonlyArray<number>,
  { uniqueName }: Pick<Dependencies, "uniqueName">
): Promise<void> => {
  const { channel, source, way } = session
  for (let left = tags; ; ) {
    const [first, ...others] = way === byGet ? left.slice(0, few) : left
    if (first !== undefined) Client.ackEach(channel, [first, ...others])
    session.consumers++
    if (way === byGet) await byGet(session, 1)
    else for (const message of await KeptBack.prove(channel, source.queue, uniqueName())) note(session, message)
    left = way === byGet ? left.slice(few) : []
    if (left.length === 0) return
  }
}
