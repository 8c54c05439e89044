/** Notices what other processes change in the file, without polling it often. */
import type { Timers } from "@requeue/core/port"
import type { Driver } from "../client.ts"

/** How often the file is checked although no change was reported, in milliseconds. */
const beat = 5000

/** The same if the platform cannot watch the file. */
const beatUnwatched = 200

/** How many checks follow a report, after 1, 2, 4 and more milliseconds: about a second together. */
const checks = 10

interface Dependencies {
  readonly path: string
  readonly driver: Driver
  readonly timers: Timers.Timers
  /** The timers of the beats: nothing else waits for them. */
  readonly beats: Timers.Timers
  /** Returns a number that every commit of another connection changes; NaN if that is unknown. */
  readonly version: () => number
  /** Called after a commit of another connection. */
  readonly onChange: () => void
  /** Whether a commit would change anything; else it is noticed later. */
  readonly isAwaited: () => boolean
  /** Called with each beat, before the check. */
  readonly onBeat: () => void
}

/**
 * Watches until the returned function is called. Every commit writes to the `-wal` file before it is visible: a connection with
 * `synchronous = FULL` waits for the disk in between, so several checks follow a report. The number changes with
 * the commits of other connections, and not with our own.
 */
export const watch = ({
  beats,
  driver,
  isAwaited,
  onBeat,
  onChange,
  path,
  timers,
  version
}: Dependencies): (() => void) => {
  let seen = version()
  let isScheduled = false
  let timer: Timers.Timer | undefined
  /** The next check of the last report, and how many came before it. */
  let [following, done]: [Timers.Timer | undefined, number] = [undefined, 0]

  const check = (): void => {
    if (!isAwaited()) return
    const before = seen
    seen = version()
    if (!Object.is(seen, before)) onChange()
  }

  const follow = (): void => {
    following = timers.after(2 ** done, () => {
      check()
      following = undefined
      if (++done < checks) follow()
    })
  }

  const reported = (): void => {
    check()
    if (following !== undefined && done === 0) return
    timers.cancel(following)
    done = 0
    follow()
  }

  const unwatch = driver.watch(path, () => {
    if (isScheduled) return
    isScheduled = true
    driver.soon(() => {
      isScheduled = false
      if (timer !== undefined) reported()
    })
  })

  const arm = (): void => {
    timer = beats.after(unwatch === undefined ? beatUnwatched : beat, () => {
      onBeat()
      if (timer === undefined) return
      check()
      arm()
    })
  }
  arm()

  return () => {
    unwatch?.()
    beats.cancel(timer)
    timers.cancel(following)
    timer = undefined
  }
}
