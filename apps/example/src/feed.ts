/** Sends messages to the queue over time, and can be stopped. */
export interface Feed {
  /** The number of messages that it sends unless it is stopped. */
  readonly total: number
  /** The number of messages so far that the broker has confirmed. */
  readonly count: () => number
  /** Whether it has finished, was stopped, or failed. */
  readonly isOver: () => boolean
  /** Stops sending. Resolves when the messages in flight are confirmed; rejects if the feed has failed. */
  readonly stop: () => Promise<void>
}

/** Makes a feed. `run` reports its count after each step, and ends soon after the signal. */
export const makeFeed = (
  total: number,
  run: (signal: AbortSignal, onCount: (count: number) => void) => Promise<void>
): Feed => {
  const stop = new AbortController()
  let count = 0
  let over = false
  const done = run(stop.signal, (confirmed) => {
    count = confirmed
  }).finally(() => {
    over = true
  })
  // `stop` reports a failure; until then it must not count as an unhandled rejection.
  done.catch(() => undefined)
  return {
    total,
    count: () => count,
    isOver: () => over,
    stop: () => {
      stop.abort()
      return done
    }
  }
}
