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
  /** Milliseconds that an answer of the server may take. */
  readonly requestTimeout: number
  readonly serverVersion: () => string
  readonly uniqueName: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Resolves after so many milliseconds. */
  readonly sleep: (millis: number) => Promise<void>
}

/** A message, and what it says. */
export interface Content {
  readonly message: Client.Incoming
  readonly decoded: Decoded
}

/** A queue that is browsed, and what happens to its messages. */
export interface Source {
  readonly queue: string
  /** Whether its messages wait for their delay: they are taken ahead of the pages, and need no order. */
  readonly isDelayed: boolean
  /** Whether only the end of the channel returns them in time. */
  readonly closes: boolean
  /** Whether each return brings the server nearer to giving a message up, so that all of them are kept. */
  readonly isCounted: boolean
  /** Reads a message as the next consumer would. */
  readonly read: (message: Client.Incoming) => Decoded
  /** Whether the server may be about to give a message up for being browsed. */
  readonly isNear: (content: Content) => boolean
  /** Publishes copies that take the place of messages, in order. Returns the error of each, `undefined` where it is confirmed. */
  readonly copy: (contents: ReadonlyArray<Content>) => Promise<ReadonlyArray<unknown>>
}

/** A message that is held. */
interface Held {
  /** The number of the consumer that took it. */
  readonly consumer: number
  /** Whether it is on a page, so that it can be removed. */
  isShown: boolean
  /** `undefined` where it need not be replaced. */
  content: Content | undefined
}

/** A channel that holds messages until it ends, and how far it has come. */
export interface Session {
  readonly source: Source
  readonly channel: Client.Channel
  /** Whether the channel is open. */
  readonly isOpen: () => boolean
  /** The error of a channel that was lost with what it held. */
  readonly lost: () => BrokerError.BrokerError
  /** Runs one sequence of requests after the other. */
  readonly turn: <A>(run: () => Promise<A>) => Promise<A>
  /** `leaving`: nobody waits for what it takes. */
  state: "open" | "leaving" | "ended"
  /** How it takes messages. */
  way: Way
  /** The messages that it holds, by their delivery tags, the oldest first. */
  readonly held: Map<number, Held>
  /** The bytes of held messages that may have to be replaced. */
  bytes: number
  /** Messages that were taken and not shown yet, such as those of a page whose caller has gone. */
  readonly taken: Array<Content>
  /** Whether it held too many messages at the last page to keep what replacing one takes. */
  isForgetting: boolean
  /** The delivery tags of messages that were acknowledged, and of which it is not known whether the queue has heard it. */
  readonly unproven: Set<number>
  /** Whether the last message was returned before: the server shows those first. */
  isReturned: boolean
  /** The number of its consumers so far. */
  consumers: number
  /** The sizes of its pages, by those that were shown. */
  readonly pages: PageSize.PageSize
  /** Whether nothing was left when it tried last. */
  isWhole: boolean
}

/** Keeps no longer what replacing a message takes. */
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
  const { consumers, held, source, taken } = session
  const content = { message, decoded: source.read(message) }
  session.isReturned = message.fields.redelivered
  session.bytes += message.content.length
  held.set(message.fields.deliveryTag, { consumer: consumers, isShown: false, content })
  taken.push(content)
}

/** Milliseconds that no message comes. A delayed message may have gone on meanwhile, and those that are held must not be late. */
const silence = { ready: 500, delayed: 50 }

/** Takes up to so many messages, the oldest first. */
export type Way = (session: Session, wanted: number, env: Pick<Dependencies, "sleep">) => Promise<void>

/**
 * Takes messages by one consumer, whose messages are answered by one frame and one command to the queue. Those of
 * `basic.get` have a consumer each: of more than 32 answers, a quorum queue that is left at once hears the first alone, and
 * takes the other messages for failed; and it takes messages back in another order.
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
  // Others may take some, or may be the only ones who get any.
  const isOver = () => isCancelled || session.state === "leaving" || !session.isOpen() || count >= wanted
  for (let seen = -1; count > seen && !isOver(); ) {
    seen = count
    await until(source.isDelayed ? silence.delayed : silence.ready, env, isOver)
  }
  await channel.cancel(consumerTag)
}

/** Takes messages one by one, where no other consumer may be, or where another gets all. */
export const byGet = async (session: Session, wanted: number): Promise<void> => {
  for (let left = wanted; left > 0 && session.state !== "leaving"; left--) {
    const message = await session.channel.get(session.source.queue)
    if (message === false) return
    note(session, message)
  }
}

/** Takes messages until so many are to be shown. */
export const take = async (session: Session, most: number, env: Pick<Dependencies, "sleep">): Promise<void> => {
  const { channel, held, source, taken } = session
  const count = () => channel.checkQueue(source.queue)
  const wanted = Math.min((await count()).messageCount, most - taken.length)
  if (wanted > 0) await session.way(session, wanted, env)
  if (wanted > 0 && held.size === 0 && session.way !== byGet) {
    // Another consumer may be the only one who gets any.
    await byGet(session, wanted)
    if (held.size > 0) session.way = byGet
  }
  session.isWhole = false
  if (taken.length > 0) return
  const { consumerCount, messageCount } = await count()
  // Somebody else who browses, or moves messages on, may have some of those that are delayed.
  const own = new Set([...held.values()].map(({ consumer }) => consumer)).size
  session.isWhole = messageCount === 0 && (!source.isDelayed || consumerCount <= own)
}

/** Acknowledgements of messages of `basic.get` after which the queue is asked: it is sent 32 commands of a channel at a time. */
const few = 16

/**
 * Acknowledges messages that are not held any more, and waits until the queue has carried it out. A message that it hands out
 * meanwhile begins the next page.
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
