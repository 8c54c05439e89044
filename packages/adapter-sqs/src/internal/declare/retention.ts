/**
 * How long a message stays in its queue while it is retried. SQS deletes it at a certain age; hidden from one retry to the
 * next it grows older, and a copy starts anew.
 */
import { Backoff, RetryPolicy } from "@requeue/core/adapter-kit"
import { longestHide } from "../settle/toCommand.ts"

export { longestHide }

/** The longest delay of the policy's own, in milliseconds. */
export const longestDelay = ({ backoff, ...retry }: RetryPolicy.RetryPolicy): number => {
  const listed = RetryPolicy.schedule({ ...retry, backoff }).map(({ delay: [, high] }) => high)
  const isAll = listed.length < RetryPolicy.scheduleLimit
  return Math.max(0, ...listed, isAll || backoff === undefined ? 0 : Backoff.longest(backoff))
}

/** The longest time that one copy is retried by hiding it, in milliseconds; 0 where it is unlimited. */
export const longest = (retry: RetryPolicy.RetryPolicy): number => {
  const { schedule, worstCase } = RetryPolicy.describe(retry)
  if (worstCase === Number.POSITIVE_INFINITY) return 0
  let stay = 0
  let most = 0
  for (const {
    delay: [, high]
  } of schedule) {
    stay = high > longestHide ? 0 : stay + high
    most = Math.max(most, stay)
  }
  const unlisted = worstCase - (schedule.at(-1)?.elapsed[1] ?? 0)
  return Math.min(Math.max(most, stay + unlisted), retry.maxAge)
}
