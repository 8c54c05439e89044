/**
 * The attempts of a sliding window, in ten buckets at most, whatever the number of attempts. Positions are whole
 * milliseconds, or numbers of attempts.
 */

/** The attempts of a tenth of the window. */
export interface Bucket {
  /** The position of its first attempt. */
  readonly start: number
  readonly attempts: number
  readonly failures: number
}

export type AttemptWindow = ReadonlyArray<Bucket>

export const empty: AttemptWindow = []

const maxBuckets = 10

/** Adds an attempt, and drops the buckets that began `span` or more before it. */
export const add = (window: AttemptWindow, position: number, span: number, hasFailed: boolean): AttemptWindow => {
  const kept = window.length > 0 && position - window[0]!.start >= span ? within(window, position - span) : window
  const failures = hasFailed ? 1 : 0
  const last = kept.at(-1)
  return last !== undefined && position - last.start < Math.ceil(span / maxBuckets)
    ? kept.with(kept.length - 1, { start: last.start, attempts: last.attempts + 1, failures: last.failures + failures })
    : [...kept, { start: position, attempts: 1, failures }]
}

const within = (window: AttemptWindow, since: number): AttemptWindow => window.filter(({ start }) => start > since)

/** The position after the last attempt, where positions are numbers of attempts. */
export const next = (window: AttemptWindow): number => {
  const last = window.at(-1)
  return last === undefined ? 0 : last.start + last.attempts
}

export const total = (window: AttemptWindow): Pick<Bucket, "attempts" | "failures"> => {
  let [attempts, failures] = [0, 0]
  for (const bucket of window) {
    attempts += bucket.attempts
    failures += bucket.failures
  }
  return { attempts, failures }
}
