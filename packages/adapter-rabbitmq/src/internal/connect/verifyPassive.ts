/**
 * Passive declares that are believed. Of a quorum queue whose leader does not answer within 250 ms, as on a busy server, the
 * server tells that the queue is empty and nobody reads it. https://www.rabbitmq.com/docs/quorum-queues
 * https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_quorum_queue.erl
 */

/** The part of a driver's channel that asks what is there. */
interface Asking {
  checkQueue: (queue: string) => Promise<{ readonly messageCount: number; readonly consumerCount: number }>
  readonly checkExchange: (exchange: string) => Promise<unknown>
}

/** Milliseconds for which the server waits for a leader. */
const leaderTimeout = 250

/** An exchange that every virtual host has; to ask for it needs no permission. */
const always = "amq.direct"

const timed = async <A>(ask: () => PromiseLike<A>): Promise<readonly [answer: A, millis: number]> => {
  const begun = performance.now()
  const answer = await ask()
  return [answer, performance.now() - begun]
}

/**
 * Makes the `checkQueue` of a channel ask again while the server has waited for a leader in vain. It ends when the channel closes:
 * whoever asks has a time limit. On a slow line every answer takes as long, which other questions tell:
 * two in a row, because a busy machine may be late once.
 */
export const verifyPassive = (channel: Asking): void => {
  const check = channel.checkQueue.bind(channel)
  channel.checkQueue = async (queue) => {
    /** Answers in a row that took no longer than the line may. */
    let slow = 0
    for (;;) {
      const [answer, millis] = await timed(() => check(queue))
      if (answer.messageCount > 0 || answer.consumerCount > 0 || millis < leaderTimeout) return answer
      const [, line] = await timed(() => channel.checkExchange(always))
      slow = millis - line < leaderTimeout / 2 ? slow + 1 : 0
      if (slow > 1) return answer
    }
  }
}
