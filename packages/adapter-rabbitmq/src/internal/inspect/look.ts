/** Looks at the waiting messages of a queue, page by page, and leaves them there, in their order. */
import { type Broker, BrokerError, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import * as Client from "../client.ts"
import { givenUp } from "../consume/givenUp.ts"
import { type Decoded, toDelivery } from "../consume/toDelivery.ts"
import { toNative } from "../consume/toNative.ts"
import { request } from "../connect/request.ts"
import type { Declarer } from "../declare/declare.ts"
import { again } from "../publish/again.ts"
import type { Publisher } from "../publish/publisher.ts"
import { direct, toPublication } from "../publish/toPublication.ts"
import * as Version from "../version.ts"
import * as Wire from "../wire.ts"

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
interface Held {
  readonly message: Client.Incoming
  readonly decoded: Decoded
}

/** The most messages that are kept while they are looked at, since they may have to be replaced, and their bytes. */
const maxKept = 1000
/** The same where every one may have to be, so that a look ends there; and those beyond a look that are replaced with it. */
const maxReplaced = 10_000
const maxReplacedBytes = 64 * 2 ** 20

/** The most messages of a page, those of the first one, and the bytes of a page that is not the first. */
const maxPage = 1000
const firstPage = 100
const pageBytes = 4 * 2 ** 20

/** Milliseconds that returned messages may take to be counted again, at least, and for each of them. */
const recountTimeout = 1000
const recountEach = 0.1
/** Milliseconds that no message comes, and between two questions. */
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

/** Takes up to so many messages, the oldest first. */
type Take = (
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
const byConsumer: Take = async (session, queue, wanted, env) => {
  const { channel, isOpen } = session
  const messages: Array<Client.Incoming> = []
  let isCancelled = false
  await channel.prefetch(wanted)
  const { consumerTag } = await channel.consume(queue, (message) => {
    if (message === null) return void (isCancelled = true)
    messages.push(message)
    session.last = message.fields.deliveryTag
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
const byGet: Take = async (session, queue, wanted) => {
  const messages: Array<Client.Incoming> = []
  while (messages.length < wanted) {
    const message = await session.channel.get(queue)
    if (message === false) break
    messages.push(message)
    session.last = message.fields.deliveryTag
  }
  return messages
}

/** A channel that has messages until it closes, and how far it has come. */
interface Session {
  readonly channel: Client.Channel
  readonly isOpen: () => boolean
  /** The delivery tag of the last message, those of a page that was left in the middle included. */
  last: number
  /** The delivery tags of the last messages of pages, which had a consumer each. */
  readonly ends: Array<number>
  /** The consumer that takes a page. */
  consumer: string | undefined
  /** Messages that were shown. */
  shown: number
  /** Messages that may have to be replaced, the oldest first. */
  kept: ReadonlyArray<Held>
  /** Bytes of all messages. */
  bytes: number
}

/** Whether each look brings the server nearer to giving a message up, so that all of them are kept. */
const isCounted = ({ type }: RabbitMqQueue, { serverVersion }: Dependencies): boolean =>
  Version.countsReleases(type === "quorum" ? type : "classic", serverVersion())

/** Gives all back, or replaces those that the server is about to give up. */
const end = async (session: Session, queue: string, env: Dependencies): Promise<void> => {
  const { channel, consumer, isOpen, kept, shown } = session
  if (!isOpen()) return
  if (consumer !== undefined) await channel.cancel(consumer)
  const { last } = session
  if (last === 0) return
  const found = env.found(queue)
  const near = kept.filter(({ decoded }) => isNear(decoded, found))
  if (near.length === 0) await giveBack(session, queue, env)
  else if (kept.length === shown && shown === last) {
    // All of the queue, so that it keeps its order.
    const others = await byConsumer(session, queue, maxReplaced, env)
    const rest = others.map((message): Held => ({ message, decoded: read(message, queue, env) }))
    await replace(channel, queue, [...kept, ...rest], env)
  } else {
    await replace(channel, queue, near, env)
    await giveBack(session, queue, env)
  }
  // A quorum queue takes messages back in its own time: a redrive that begins right after a look would count too few.
  await until(recountTimeout + recountEach * last, env, async () => {
    const { messageCount } = await channel.checkQueue(queue)
    return messageCount >= last
  })
}

const read = (message: Client.Incoming, queue: string, { found, now, serverVersion }: Dependencies): Decoded =>
  toDelivery(message, { type: found(queue).type, serverVersion: serverVersion(), keepsNotBefore: false, now })

/** The delivery as it is shown: nobody can settle it. */
const shown = (
  { decoded: { attempts, body, headers, metadata, redelivered, unreadable }, message }: Held,
  queue: string
): Delivery.Delivery => ({
  body,
  headers,
  attempts,
  metadata,
  redelivered,
  unreadable,
  get native() {
    return toNative(Wire.propertiesOf(message), metadata.deadLetter?.queue ?? queue)
  },
  receipt: undefined
})

/** Opens a channel, on which all is given back when the scope closes. */
const connect = (queue: string, env: Dependencies): Effect.Effect<Session, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const channel = yield* env.declarer.channel("peek", queue)
    let isOpen = true
    channel.on("close", () => (isOpen = false))
    const session: Session = {
      channel,
      isOpen: () => isOpen,
      last: 0,
      ends: [],
      consumer: undefined,
      shown: 0,
      kept: [],
      bytes: 0
    }
    // Whatever fails then, the server has all back when the channel closes.
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.tryPromise(() => end(session, queue, env))))
    return session
  })

/** Looks at up to `limit` messages of a queue; fails where there is none. */
export const open = (
  queue: string,
  limit: number,
  env: Dependencies
): Effect.Effect<Broker.Look, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const context = { operation: "peek", queue }
    const scope = yield* Effect.scope
    const { requestTimeout } = env
    let session = yield* connect(queue, env)
    let take = byConsumer
    let isOver = false
    const { messageCount } = yield* request(context, requestTimeout, () => session.channel.checkQueue(queue))
    const isLimited = isCounted(env.found(queue), env)
    const most = Math.min(messageCount, limit, isLimited ? maxReplaced : Number.POSITIVE_INFINITY)

    const wanted = (): number => {
      const { bytes, shown } = session
      if (isLimited && bytes > maxReplacedBytes) return 0
      const fitting = Math.floor((pageBytes * shown) / (bytes + 1))
      return Math.min(shown === 0 ? firstPage : Math.max(1, Math.min(maxPage, fitting)), most - shown)
    }

    const keep = (page: ReadonlyArray<Held>): void => {
      session.shown += page.length
      for (const { message } of page) session.bytes += message.content.length
      const found = env.found(queue)
      const all = [...session.kept, ...page]
      const keepsAll = isLimited || session.shown <= maxKept
      session.kept = keepsAll ? all : all.filter(({ decoded }) => isNear(decoded, found))
      // More of them could not be replaced.
      isOver ||= session.kept.length >= maxReplaced
    }

    const ask = (by: Take, count: number): Effect.Effect<ReadonlyArray<Client.Incoming>, BrokerError.BrokerError> =>
      Effect.flatMap(
        // On a slow line, a page may take longer than an answer.
        request(context, 3 * requestTimeout, () => by(session, queue, count, env)),
        (page) =>
          session.isOpen()
            ? Effect.succeed(page)
            : Effect.fail(
                new BrokerError.BrokerError({
                  broker: "rabbitmq",
                  ...context,
                  reason: "ConnectionLost",
                  detail: "the connection was lost, and the server has all messages back"
                })
              )
      )

    const another = Effect.gen(function* () {
      take = byGet
      session = yield* Scope.provide(connect(queue, env), scope)
      return yield* ask(byGet, Math.min(firstPage, most))
    })

    const next = Effect.gen(function* () {
      const count = wanted()
      if (isOver || count <= 0) return []
      const taken = yield* Effect.catchIf(
        ask(take, count),
        // Somebody else consumes it exclusively.
        ({ reason }) => reason === "AccessRefused" && session.shown === 0 && take !== byGet,
        () => another
      )
      const page = taken.length > 0 || take === byGet ? taken : yield* ask(byGet, Math.min(firstPage, count))
      isOver = page.length === 0
      const held = page.map((message): Held => ({ message, decoded: read(message, queue, env) }))
      keep(held)
      return held.map((one) => shown(one, queue))
    })
    return { next }
  })

/** Waits until a queue has taken back what was given back: a quorum queue does that in its own time. */
export const takenBack = (
  env: Pick<Dependencies, "sleep"> & { readonly declarer: Pick<Declarer, "onChannel"> },
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
): Effect.Effect<ReadonlyArray<Delivery.Delivery>, BrokerError.BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { next } = yield* open(queue, limit, env)
      const seen: Array<Delivery.Delivery> = []
      for (let page = yield* next; page.length > 0; page = yield* next) seen.push(...page)
      return seen
    })
  )
