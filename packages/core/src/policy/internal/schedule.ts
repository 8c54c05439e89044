/** The schedule of a retry policy, in figures and in words. */
import * as Delay from "../../message/Delay.ts"
import * as Backoff from "../Backoff.ts"

/** The parts of a policy that make its schedule. */
interface Scheduled {
  readonly maxAttempts: number
  readonly maxAge: number
  readonly immediate: number
  readonly backoff: Backoff.Backoff | undefined
}

/** One retry of a policy's schedule. Times are ranges, in milliseconds. */
export interface Step {
  /** The number of the failed attempt, from 1. */
  readonly attempt: number
  /** The delay until the next delivery. */
  readonly delay: readonly [number, number]
  /** Time from the first delivery to the next one, without handler runs. */
  readonly elapsed: readonly [number, number]
}

/** The most steps that {@link schedule} lists. */
export const scheduleLimit = 100

/** Returns the retries of a policy with their delays, at most 100. `defaultDelay`: the consumer's `retryDelay`, in ms. */
export const schedule = (policy: Scheduled, defaultDelay: Delay.Delay = 0): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  let [low, high] = [0, 0]
  for (let attempt = 1; attempt < policy.maxAttempts && attempt <= scheduleLimit; attempt++) {
    const delay =
      policy.backoff === undefined ? ([defaultDelay, defaultDelay] as const) : Backoff.range(policy.backoff, attempt)
    low += delay[0]
    high += delay[1]
    if (low > policy.maxAge) break
    steps.push({ attempt, delay, elapsed: [low, Math.min(high, policy.maxAge)] })
  }
  return steps
}

/** A policy in figures and in words. */
export interface Description {
  /** The retries, at most 100. */
  readonly schedule: ReadonlyArray<Step>
  /**
   * The most completed handler runs of one message: the number of attempts times the runs of each; `Infinity` when
   * unlimited.
   */
  readonly handlerRuns: number
  /**
   * Longest time from the first to the last delivery, in ms, without handler runs and queueing. After retry 100, it
   * counts the backoff's longest delay.
   */
  readonly worstCase: number
  /** The schedule and its totals in one line, which the consumer logs when it starts. */
  readonly text: string
}

const longestElapsed = (policy: Scheduled, steps: ReadonlyArray<Step>, defaultDelay: Delay.Delay): number => {
  const listed = steps.at(-1)?.elapsed[1] ?? 0
  if (steps.length < scheduleLimit) return listed
  const unlisted = policy.maxAttempts - 1 - steps.length
  if (unlisted === Number.POSITIVE_INFINITY) return policy.maxAge
  const longest = policy.backoff === undefined ? defaultDelay : Backoff.longest(policy.backoff)
  return Math.min(listed + unlisted * longest, policy.maxAge)
}

/**
 * Describes a policy: its retries, the total of handler runs and the worst-case time. `defaultDelay` is the consumer's
 * `retryDelay`, in milliseconds.
 *
 * @example
 * ```ts
 * import { RetryPolicy } from "@requeue/core"
 *
 * const { text } = RetryPolicy.describe(RetryPolicy.make({ maxRetries: 2, immediate: 1 }), 10_000)
 * text // => "2 retries: 10s, 10s; at most 6 handler runs over 20s"
 * ```
 */
export const describe = (policy: Scheduled, defaultDelay: Delay.Delay = 0): Description => {
  const steps = schedule(policy, defaultDelay)
  const handlerRuns = policy.maxAttempts * (policy.immediate + 1)
  const worstCase = longestElapsed(policy, steps, defaultDelay)
  const delays = steps.slice(0, 8).map(({ delay: [low, high] }) => {
    return low === high ? Delay.format(high) : `${Delay.format(low)}..${Delay.format(high)}`
  })
  const retries = policy.maxAttempts - 1
  const listed = delays.length === 0 ? "" : `: ${delays.join(", ")}${retries > delays.length ? ", …" : ""}`
  return {
    schedule: steps,
    handlerRuns,
    worstCase,
    text:
      `${retries === Number.POSITIVE_INFINITY ? "unlimited" : retries} ${retries === 1 ? "retry" : "retries"}${listed}; ` +
      `at most ${handlerRuns === Number.POSITIVE_INFINITY ? "unlimited" : handlerRuns} handler ${handlerRuns === 1 ? "run" : "runs"} ` +
      `over ${Delay.format(worstCase)}`
  }
}
