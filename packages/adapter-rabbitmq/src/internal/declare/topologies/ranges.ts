/** The ranges from which the delays of a policy's retries are drawn. */
import { Backoff, RetryPolicy } from "@requeue/core/port"

/** The shortest and the longest delay of a retry, in milliseconds. */
export type Range = readonly [low: number, high: number]

/** The largest value of `maxDelayQueues`. */
export const maxQueues = 128

/**
 * Distinct delays without jitter that a schedule does not list. Some of them, where there are more than a policy can have queues
 * for.
 */
const exactDelays = (backoff: Backoff.Backoff, maxAttempts: number): ReadonlyArray<Range> => {
  const found = new Set<number>()
  const end = Math.min(maxAttempts, 10 * RetryPolicy.scheduleLimit)
  let attempt = RetryPolicy.scheduleLimit
  for (; attempt < end && found.size <= maxQueues; attempt++) found.add(Backoff.range(backoff, attempt)[1])
  if (attempt < maxAttempts) found.add(Backoff.longest(backoff))
  return [...found].map((delay) => [delay, delay])
}

/** The retries that a schedule does not list; each range holds some hundred of them. */
const unlisted = ({ backoff, maxAttempts }: RetryPolicy.RetryPolicy): ReadonlyArray<Range> => {
  if (backoff === undefined) return []
  const longest = Backoff.longest(backoff)
  const found: Array<Range> = []
  for (let first = RetryPolicy.scheduleLimit; first < maxAttempts && first < 2 ** 32; first *= 2) {
    const [low, high] = Backoff.range(backoff, first)
    if (low === high) return exactDelays(backoff, maxAttempts)
    found.push([low, Backoff.range(backoff, Math.min(2 * first, maxAttempts))[1]])
    if (high === longest) break
  }
  return found
}

/** The ranges of a policy's delays, each once. */
export const ofPolicy = (retry: RetryPolicy.RetryPolicy): ReadonlyArray<Range> => {
  const listed = RetryPolicy.schedule(retry).map(({ delay }) => delay)
  const all = listed.length < RetryPolicy.scheduleLimit ? listed : [...listed, ...unlisted(retry)]
  return [...new Map(all.map((range) => [range.join(), range])).values()].filter(([, high]) => high > 0)
}

/** Whether some of these delays are drawn at random. */
export const isJittered = (all: ReadonlyArray<Range>): boolean => all.some(([low, high]) => low < high)

/** Whether a retry can have this delay. */
export const has = (all: ReadonlyArray<Range>, delay: number): boolean =>
  all.some(([low, high]) => low <= delay && delay <= high)

/** The longest delay. */
export const longest = (all: ReadonlyArray<Range>): number => all.reduce((found, [, high]) => Math.max(found, high), 0)
