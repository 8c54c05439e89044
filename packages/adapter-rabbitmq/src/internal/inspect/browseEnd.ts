/** The end of a browser: all that it holds goes back in its order, and what the server is about to give up is replaced. */
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

/** The most messages that are replaced by one browser, where every one may have to be. */
export const maxReplaced = 10_000

/** Milliseconds that returned messages may take to be counted again, at least, and for each of them. */
const recountTimeout = 1000
const recountEach = 0.1

/** Replaces messages by their copies, behind all others, where these are confirmed. */
const replace = async (session: Session, contents: ReadonlyArray<Content>, env: Dependencies): Promise<void> => {
  const errors = await session.source.copy(contents)
  const tags = contents.flatMap(({ message }, at) => (errors[at] === undefined ? [message.fields.deliveryTag] : []))
  for (const tag of tags) release(session, tag)
  // One answer for all needs no proof, which might take out a copy, and count as its return.
  if (session.held.size === 0) session.channel.ackAll()
  else if (tags.length > 0) await acknowledge(session, tags, env)
}

/** The most messages of one answer that a quorum queue before 4.0 takes back in their order. */
const inOrder = 32

/**
 * Answers that may be under way. A server that has more of them from one channel sorts them by consumers.
 * https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_fifo_client.erl
 */
const maxAnswers = 16

/** Gives all messages back, in their order. No answer is for the messages of two consumers. */
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

/** Milliseconds for which messages are taken for the sake of the order. */
const passing = 5000

/**
 * Takes what is left of the messages that were given back before. A quorum queue hands those out first, and puts what is given
 * back behind them: what a browser has shown would come after them. Given back together, they keep their order.
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

/** Waits until a queue has taken messages back, which a quorum queue does in its own time: whoever came next would see too few. */
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

/** Gives all back, or replaces those that the server is about to give up. */
export const end = async (session: Session, env: Dependencies): Promise<void> => {
  const { channel, held, source } = session
  session.state = "ended"
  if (!session.isOpen() || held.size === 0) return
  const contents = () => [...held.values()].flatMap(({ content }) => content ?? [])
  const near = contents().filter(source.isNear)
  if (near.length > 0 && !source.isDelayed && contents().length === held.size) {
    // All of the queue, so that it keeps its order.
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
