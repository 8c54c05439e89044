/**
 * Jobs of the event loop: each is one callback, with all that runs at once after it. Many messages come in one, so that what
 * each of them would cost is paid once for all.
 *
 * When to use: in an adapter, for work that follows every message or settlement.
 */

/**
 * Puts off work to the end of the current job, once for all who ask for it in that job.
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

/**
 * A clock, or another value, that is read once for all who ask in one job: for what is noted of every message.
 *
 * @example
 * ```ts
 * import { EventLoop } from "@requeue/core/port"
 *
 * let reads = 0
 * const now = EventLoop.oncePerJob(() => ++reads)
 * now() // => 1
 * now() // => 1
 * await Promise.resolve()
 * now() // => 2
 * ```
 */
export const oncePerJob = (read: () => number): (() => number) => {
  let known: number | undefined
  const forget = atEndOfJob(() => {
    known = undefined
  })
  return () => {
    if (known !== undefined) return known
    forget()
    return (known = read())
  }
}
