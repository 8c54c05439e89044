/**
 * Dead letters of a queue with the strategy `at-least-once`: each stays in the queue, invisible, until its next queue has it.
 * https://www.rabbitmq.com/docs/quorum-queues#dead-lettering
 *
 * | rule | source |
 * | --- | --- |
 * | 32 letters are under way at a time; the others wait behind them | `dead_letter_worker_consumer_prefetch`, deps/rabbit/Makefile |
 * | a letter without a queue is sent again after 3 minutes | `dead_letter_worker_publisher_confirm_timeout`, seen on 3.10.8 |
 */
import type { Host } from "../Host.ts"

/** Letters that are under way at a time. */
const most = 32

/** Milliseconds after which a letter that no queue has taken is sent again. */
const pause = 180_000

/** The letters of one queue. */
export interface DeadLetters<A> {
  readonly add: (letter: A) => void
  /** The number of letters that no queue has yet. */
  readonly size: () => number
  readonly end: () => void
}

/** Makes the worker of a queue. `send` returns whether all target queues have the letter. */
export const make = <A>(host: Host, send: (letter: A) => boolean): DeadLetters<A> => {
  const waiting: Array<A> = []
  const pending = new Map<A, () => void>()
  let isOver = false

  const attempt = (letter: A): void => {
    pending.delete(letter)
    if (!send(letter) && !isOver)
      pending.set(
        letter,
        host.after(pause, () => attempt(letter))
      )
    pump()
  }

  const pump = (): void => {
    while (pending.size < most && !isOver) {
      const letter = waiting.shift()
      if (letter === undefined) return
      attempt(letter)
    }
  }

  return {
    add: (letter) => {
      waiting.push(letter)
      pump()
    },
    size: () => waiting.length + pending.size,
    end: () => {
      isOver = true
      waiting.length = 0
      for (const cancel of pending.values()) cancel()
      pending.clear()
    }
  }
}
