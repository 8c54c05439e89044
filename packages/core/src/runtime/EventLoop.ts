/**
 * Jobs of the event loop: each is one callback and everything that runs synchronously after it. Many messages arrive in one
 * job, so shared costs can be paid once.
 *
 * When to use: in an adapter, for work that follows every message or settlement.
 */

/**
 * Returns a function that runs `work` at the end of the current job, only once even if the function is called
 * repeatedly.
 *
 * @example
 * ```ts
 * import { EventLoop } from "@requeue/core/port"
 *
 * let written = 0
 * const flush = EventLoop.atEndOfJob(() => void written++)
 * flush()
 * flush()
 * await Promise.resolve()
 * written // => 1
 * ```
 */
export const atEndOfJob = (work: () => void): (() => void) => {
  let isScheduled = false
  return () => {
    if (isScheduled) return
    isScheduled = true
    queueMicrotask(() => {
      isScheduled = false
      work()
    })
  }
}

/** Returns a function that reads a clock or another value at most once per job. */
export const oncePerJob = (read: () => number): (() => number) => {
  let value: number | undefined
  const forget = atEndOfJob(() => {
    value = undefined
  })
  return () => {
    if (value !== undefined) return value
    forget()
    return (value = read())
  }
}
