/**
 * Makes passive declares reliable. If a quorum queue's leader does not answer within 250 ms, as on a busy server, the
 * server reports that the queue has no messages and no consumers. https://www.rabbitmq.com/docs/quorum-queues
 * https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_quorum_queue.erl
 */

/** The part of a driver's channel that declares passively. */
interface Asking {
  checkQueue: (queue: string) => Promise<{ readonly messageCount: number; readonly consumerCount: number }>
  readonly checkExchange: (exchange: string) => Promise<unknown>
}

/** Milliseconds that the server waits for a leader. */
const leaderTimeout = 250

/** An exchange that exists in every virtual host; a passive declare of it needs no permission. */
const always = "amq.direct"

const timed = async <A>(ask: () => PromiseLike<A>): Promise<readonly [answer: A, millis: number]> => {
  const begun = performance.now()
  const answer = await ask()
  return [answer, performance.now() - begun]
}

/**
 * Makes the channel's `checkQueue` repeat a request for which the server may have waited for a leader in vain. It ends
 * when the channel closes: callers have a time limit. On a slow line every answer is late, so a request for an exchange
 * measures the line. It must explain two answers in a row, because a busy machine may be late once.
 */
export const verifyPassive = (channel: Asking): void => {
  const check = channel.checkQueue.bind(channel)
  channel.checkQueue = async (queue) => {
    /** Answers in a row whose delay the line explains. */
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
