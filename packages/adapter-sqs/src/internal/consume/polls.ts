/**
 * Concurrent long polls, adapted to the credit and the backlog. An idle queue has one. Each poll that returns at least
 * half full allows one more, up to a maximum; an empty one resets to one. Together they never request more than the
 * free credit.
 *
 * When polls end, a running poll is not aborted: SQS would continue it, and hide the messages that it finds until their
 * visibility timeout ends.
 *
 * https://github.com/aws/aws-sdk-js/issues/2350
 */
import type { BrokerError, Timers } from "@requeue/core/port"
import type { Receive } from "./receive.ts"

/** The polls of one queue. */
export interface Polls {
  /** Sets how many deliveries may be in flight. */
  readonly credit: (limit: number) => void
  /** The number of deliveries in flight may have decreased. */
  readonly refresh: () => void
  /** Returns the milliseconds until the running polls have ended; 0 without any. */
  readonly endsIn: () => number
  /**
   * Returns for how many milliseconds a running poll would receive a message that is returned now, only to return it
   * again, because the consumer has no credit. 0 if the message may be delivered at once, for example when the poll
   * ends {@link soon}.
   */
  readonly holdFor: () => number
  /** Starts no further polls, and calls back when the running ones have ended. */
  readonly close: (done: () => void) => void
}

interface Options<M> {
  readonly timers: Timers.Timers
  /** Maximum number of concurrent polls. */
  readonly maxPolls: number
  /** Maximum number of messages per poll. */
  readonly pollSize: number
  /** Length of one poll in milliseconds. */
  readonly waitTime: number
  /** The number of deliveries in flight. */
  readonly inFlight: () => number
  /** The number of deliveries whose settlement keeps failing: they make no room soon. */
  readonly held: () => number
  /** Whether polls may begin. Call `refresh` when this becomes true. */
  readonly mayPoll: () => boolean
  readonly receive: Receive<M>
  readonly onMessages: (messages: ReadonlyArray<M>) => void
  readonly onFailure: (error: BrokerError.BrokerError) => void
  /** A poll has succeeded. */
  readonly onSuccess: () => void
}

/** Milliseconds that a poll for fewer than the maximum of messages waits for more credit. */
const linger = 50

/** Milliseconds: closing waits for a poll that ends within this time, and no message is held back for it. */
export const soon = 1000

/** Milliseconds that a poll may exceed its time, for the network. */
const way = 500

/** Milliseconds before the poll after a failure; doubled for each consecutive failure, up to the longest. */
const [firstPause, longestPause] = [250, 10_000]

/** Starts polling once it has credit. */
export const make = <M>(options: Options<M>): Polls => {
  const { inFlight, maxPolls, pollSize, timers, waitTime } = options
  /** Messages that the running polls have requested. */
  let asked = 0
  let [limit, polls] = [0, 0]
  /** The latest end of the last poll, in monotonic milliseconds. */
  let lastEnd = 0
  /** `failures` counts consecutive failed polls. */
  let [allowed, failures] = [1, 0]
  const beginHaste = countHaste(timers, waitTime)
  const pause = makePause(timers, () => pump())
  let lingering: Timers.Timer | undefined
  /** Set by `close`. */
  let onClosed: (() => void) | undefined

  const free = (): number => limit - inFlight() - asked

  const poll = (): void => {
    const count = Math.min(pollSize, free())
    polls++
    asked += count
    const endHaste = beginHaste()
    lastEnd = timers.now() + waitTime
    const end = (): void => {
      polls--
      asked -= count
    }
    options.receive(count, {
      received: (messages) => {
        end()
        if (messages.length === 0) allowed = 1
        else if (messages.length * 2 >= count) allowed = Math.min(maxPolls, allowed + 1)
        failures = 0
        const hasty = endHaste(messages.length)
        // A server or proxy that does not wait would be polled in a busy loop.
        if (hasty > 1) pause.begin(firstPause * 2 ** (hasty - 2), waitTime)
        options.onSuccess()
        if (messages.length > 0) options.onMessages(messages)
        pump()
      },
      failed: (error) => {
        end()
        allowed = 1
        options.onFailure(error)
        pause.begin(firstPause * 2 ** failures++, longestPause)
        pump()
      }
    })
  }

  const pump = (): void => {
    if (onClosed !== undefined) return polls === 0 ? onClosed() : undefined
    if (pause.isOn() || !options.mayPoll()) return
    const enough = Math.max(1, Math.min(pollSize, limit - options.held()))
    while (polls < allowed && free() >= enough) poll()
    if (polls === 0 && free() > 0) {
      lingering ??= timers.after(linger, () => {
        lingering = undefined
        if (!pause.isOn() && options.mayPoll() && onClosed === undefined && polls === 0 && free() > 0) poll()
      })
    }
  }

  const endsIn = (): number => (polls === 0 ? 0 : Math.max(0, lastEnd - timers.now()))

  return {
    endsIn,
    holdFor: () => ((limit === 0 || onClosed !== undefined) && endsIn() > soon ? endsIn() + way : 0),
    credit: (wanted) => {
      limit = wanted
      pump()
    },
    refresh: pump,
    close: (done) => {
      onClosed = done
      pump()
    }
  }
}

/**
 * Counts consecutive polls that found nothing and did not wait. Some servers wake all polls for a message that only one
 * receives: the others count as having waited. Returns a function to call at a poll's start, which returns one for its
 * end.
 */
const countHaste = (timers: Timers.Timers, waitTime: number) => {
  /** `found` counts polls that found messages. */
  let [found, hasty] = [0, 0]
  return () => {
    const [began, foundBefore] = [timers.now(), found]
    return (messages: number): number => {
      if (messages > 0) found++
      if (messages > 0 || timers.now() - began >= waitTime / 2) hasty = 0
      else if (found === foundBefore) hasty++
      return hasty
    }
  }
}

/** Makes pauses, one at a time. Calls `onEnd` after each. */
const makePause = (timers: Timers.Timers, onEnd: () => void) => {
  let timer: Timers.Timer | undefined
  return {
    isOn: () => timer !== undefined,
    /** Begins a pause in milliseconds, unless one is running. */
    begin: (milliseconds: number, longest: number): void => {
      timer ??= timers.after(Math.min(milliseconds, longest), () => {
        timer = undefined
        onEnd()
      })
    }
  }
}
