/**
 * Concurrent long polls, as many as the credit and the backlog ask for. An idle queue has one. Each that comes back at
 * least half full allows one more, up to a maximum; an empty one goes back to one. Together they never ask for more
 * than the free credit.
 *
 * Where they end, the poll under way is left to itself rather than cut off: SQS would go on with it, and hide what it finds
 * until the visibility timeout ends, whether or not anybody still listens.
 *
 * https://github.com/aws/aws-sdk-js/issues/2350
 */
import type { BrokerError, Timers } from "@requeue/core/port"
import type { Receive } from "./receive.ts"

/** The polls of one queue. */
export interface Polls {
  /** Sets how many deliveries may be in flight. */
  readonly credit: (limit: number) => void
  /** Fewer deliveries may be in flight than before. */
  readonly refresh: () => void
  /** Milliseconds until the polls under way have ended, by what they were asked; 0 without any. */
  readonly endsIn: () => number
  /**
   * Milliseconds for which a message that is given back now would be received by a poll under way, and given back once more:
   * while no further messages are wanted. 0 where it may come at once, as when the poll ends {@link soon}.
   */
  readonly holdFor: () => number
  /** Starts no further polls, and calls back when those under way have ended. */
  readonly close: (done: () => void) => void
}

interface Options<M> {
  readonly timers: Timers.Timers
  /** Polls at a time. */
  readonly maxPolls: number
  /** Messages of one poll. */
  readonly pollSize: number
  /** Milliseconds of one poll. */
  readonly waitTime: number
  /** The number of deliveries in flight. */
  readonly inFlight: () => number
  /** The number of those among them that stay for as long as their settlement fails: no room is to be expected of them. */
  readonly held: () => number
  /** Whether polls may begin; `refresh` tells that they may again. */
  readonly mayPoll: () => boolean
  readonly receive: Receive<M>
  readonly onMessages: (messages: ReadonlyArray<M>) => void
  readonly onFailure: (error: BrokerError.BrokerError) => void
  /** A poll has succeeded. */
  readonly onSuccess: () => void
}

/** Milliseconds that a poll for fewer messages than it could bring waits for more credit. */
const linger = 50

/** Milliseconds: a poll that ends so soon is waited for where polls end, and nothing is held back for it. */
export const soon = 1000

/** Milliseconds that a poll may take beyond its time, for the way. */
const way = 500

/** Milliseconds before the poll that follows a failure; they double with each failure in a row, up to the longest. */
const [firstPause, longestPause] = [250, 10_000]

/** Polls nothing until there is credit. */
export const make = <M>(options: Options<M>): Polls => {
  const { inFlight, maxPolls, pollSize, timers, waitTime } = options
  /** Messages that the polls under way have asked for. */
  let asked = 0
  let [limit, polls] = [0, 0]
  /** When the poll that began last has ended at the latest, in monotonic milliseconds. */
  let lastEnd = 0
  /** `failures` counts polls in a row that failed. */
  let [allowed, failures] = [1, 0]
  const beginHaste = countHaste(timers, waitTime)
  const pause = makePause(timers, () => pump())
  let lingering: Timers.Timer | undefined
  /** Given when it is closed. */
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
        // A server, or something before it, that does not wait would be asked without end.
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
 * Counts polls in a row that found nothing and did not wait. Some servers wake all polls for a message that one of them gets:
 * the others have waited as well. Answers a function for the begin of a poll, which answers one for its end.
 */
const countHaste = (timers: Timers.Timers, waitTime: number) => {
  /** `found` counts polls that have found messages. */
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

/** One pause at a time; `onEnd` is called after each. */
const makePause = (timers: Timers.Timers, onEnd: () => void) => {
  let timer: Timers.Timer | undefined
  return {
    isOn: () => timer !== undefined,
    /** Begins a pause of so many milliseconds, unless there is one. */
    begin: (milliseconds: number, longest: number): void => {
      timer ??= timers.after(Math.min(milliseconds, longest), () => {
        timer = undefined
        onEnd()
      })
    }
  }
}
