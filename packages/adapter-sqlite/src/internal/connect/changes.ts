/** Notices what other processes change in the file, without polling it often. */
import type { Timers } from "@requeue/core/port"
import type { Driver } from "../client.ts"

/** How often the file is checked although no change was reported, in milliseconds. */
const beat = 5000

/** The same if the platform cannot watch the file. */
const beatUnwatched = 200

interface Dependencies {
  readonly path: string
  readonly driver: Driver
  readonly timers: Timers.Timers
  /** Returns a number that every commit of another connection changes. */
  readonly version: () => number
  /** Called after a commit of another connection. */
  readonly onChange: () => void
  /** Called with each beat, before the check. */
  readonly onBeat: () => void
}

/**
 * Watches until the returned function is called. Every commit writes to the `-wal` file. The number tells the commits of other
 * connections from our own.
 */
export const watch = ({ driver, onBeat, onChange, path, timers, version }: Dependencies): (() => void) => {
  let seen = version()
  let isScheduled = false
  let timer: Timers.Timer | undefined

  const check = (): void => {
    const before = seen
    seen = version()
    if (seen !== before) onChange()
  }

  const unwatch = driver.watch(path, () => {
    if (isScheduled) return
    isScheduled = true
    driver.soon(() => {
      isScheduled = false
      if (timer !== undefined) check()
    })
  })

  const arm = (): void => {
    timer = timers.after(unwatch === undefined ? beatUnwatched : beat, () => {
      onBeat()
      if (timer === undefined) return
      check()
      arm()
    })
  }
  arm()

  return () => {
    unwatch?.()
    timers.cancel(timer)
    timer = undefined
  }
}
