/** Whatever puts messages into the queue over time, and can be told to stop. */
export interface Feed {
  /** Messages it will put there, if it is not stopped. */
  readonly total: number
  /** Messages that it has put there, confirmed by the broker. */
  readonly count: () => number
  /** Whether no more will come: it has finished, was stopped, or failed. */
  readonly isOver: () => boolean
  /** Puts no more there; resolves when what was begun is confirmed, rejects when it failed. */
  readonly stop: () => Promise<void>
}

/** A feed of something that runs; `run` reports each step and ends soon after the signal. */
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
  // Whoever stops the feed is told of a failure; until then it is not an unhandled one.
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
