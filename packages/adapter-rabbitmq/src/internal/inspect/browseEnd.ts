/** Ends a browser: returns its messages in order, and replaces those that the server is about to dead-letter. */
import * as Client from "../client.ts"
import * as Version from "../version.ts"
import {
  acknowledge,
  byConsumer,
  type Content,
  type Dependencies,
  forget,
  release,
  type Session,
  take,
  until
} from "./browseSession.ts"

/** The most messages that one browser replaces, if it may have to replace each. */
export const maxReplaced = 10_000

/** Milliseconds until returned messages count as ready again: at least, and for each message. */
const recountTimeout = 1000
const recountEach = 0.1

/** Replaces messages by confirmed copies at the end of the queue. */
const replace = async (session: Session, contents: ReadonlyArray<Content>, env: Dependencies): Promise<void> => {
  const errors = await session.source.copy(contents)
  const tags = contents.flatMap(({ message }, at) => (errors[at] === undefined ? [message.fields.deliveryTag] : []))
  for (const tag of tags) release(session, tag)
  // One acknowledgement for all needs no check, which might take a copy and count as its return.
  if (session.held.size === 0) session.channel.ackAll()
  else if (tags.length > 0) await acknowledge(session, tags, env)
}

/** The most messages of one command that a quorum queue before 4.0 returns in order. */
const inOrder = 32

/**
 * Commands that may be in flight. A server with more of them from one channel sorts them by consumer.
 * https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_fifo_client.erl
 */
const maxAnswers = 16

/** Returns all messages in order. No command covers messages of two consumers. */
const giveBack = async ({ channel, held, source: { queue } }: Session, env: Dependencies): Promise<void> => {
  const count = async () => (await channel.checkQueue(queue)).messageCount
  const most = Version.isAtLeast(env.serverVersion(), "4.0") ? Number.POSITIVE_INFINITY : inOrder
  const all = [...held]
  let [size, answers, others] = [0, 0, 0]
  for (const [at, [tag, { consumer }]] of all.entries()) {
    size++
    if (consumer === all[at + 1]?.[1].consumer && size < most) continue
    if (answers === 0) others = await count()
    Client.requeue(channel, tag, "NackAll")
    size = 0
    if (++answers % maxAnswers === 0) await until(recountTimeout, env, async () => (await count()) > others + at)
  }
}

/** Milliseconds in which to take messages to keep the order. */
const passing = 5000

/**
 * Takes the remaining messages that were returned before. A quorum queue delivers those first and puts further returns after them,
 * so the messages of this browser would come later. Returned together, they keep their order.
 * https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_fifo.erl
 */
const passReturned = async (session: Session, env: Dependencies): Promise<void> => {
  const { held, pages, taken } = session
  const end = env.now() + passing
  for (let before = 0; session.isReturned && held.size > before && env.now() < end; ) {
    before = held.size
    for (const { message } of taken.splice(0)) forget(session, held.get(message.fields.deliveryTag)!)
    await take(session, pages.size(), env)
  }
}

/** Waits until a quorum queue has processed the returns. Otherwise the next browser would see too few messages. */
export const takenBack = (
  { source: { isDelayed } }: Pick<Session, "source">,
  size: number,
  env: Dependencies,
  count: () => Promise<{ readonly messageCount: number; readonly consumerCount: number }>
): Promise<void> =>
  until(recountTimeout + recountEach * size, env, async () => {
    const { consumerCount, messageCount } = await count()
    return consumerCount === 0 || (!isDelayed && messageCount >= size)
  })

/** Returns all messages, or replaces those that the server is about to dead-letter. */
export const end = async (session: Session, env: Dependencies): Promise<void> => {
  const { channel, held, source } = session
  session.state = "ended"
  if (!session.isOpen() || held.size === 0) return
  const contents = () => [...held.values()].flatMap(({ content }) => content ?? [])
  const near = contents().filter(source.isNear)
  if (near.length > 0 && !source.isDelayed && contents().length === held.size) {
    // All messages of the queue, to keep its order.
    await byConsumer(session, maxReplaced, env)
    await replace(session, contents(), env)
  } else if (near.length > 0) await replace(session, near, env)
  else if (!source.isDelayed && !source.isCounted) await passReturned(session, env)
  session.taken.length = 0
  if (source.closes) return
  const { size } = held
  if (source.isDelayed) channel.nackAll(true)
  else await giveBack(session, env)
  await takenBack(session, size, env, () => channel.checkQueue(source.queue))
}
