/**
 * How long a policy keeps one copy of a message in its queue. SQS deletes messages at a certain age. A message ages
 * while it is hidden until its retry; a copy starts at age 0.
 */
import { Backoff, RetryPolicy } from "@requeue/core/port"
import * as Limits from "../limits.ts"

/** Returns the longest delay of a policy's backoff, in milliseconds. */
export const longestDelay = ({ backoff, ...retry }: RetryPolicy.RetryPolicy): number => {
  const listed = RetryPolicy.schedule({ ...retry, backoff }).map(({ delay: [, high] }) => high)
  const isAll = listed.length < RetryPolicy.scheduleLimit
  return Math.max(0, ...listed, isAll || backoff === undefined ? 0 : Backoff.longest(backoff))
}

/** Returns the longest time for which one copy is retried by hiding, in milliseconds; 0 if unlimited. */
export const longest = (retry: RetryPolicy.RetryPolicy): number => {
  const { schedule, worstCase } = RetryPolicy.describe(retry)
  if (worstCase === Number.POSITIVE_INFINITY) return 0
  let kept = 0
  let most = 0
  for (const {
    delay: [, high]
  } of schedule) {
    kept = high > Limits.hide ? 0 : kept + high
    most = Math.max(most, kept)
  }
  const unlisted = worstCase - (schedule.at(-1)?.elapsed[1] ?? 0)
  return Math.min(Math.max(most, kept + unlisted), retry.maxAge)
}
