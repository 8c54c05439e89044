/**
 * Estimates the clock of an nsqd from the date of an HTTP response, in whole seconds, and from the times at which it
 * stored messages. Times are in milliseconds: nsqd's and the consumer's wall clock since the epoch, `elapsed` by this
 * process's monotonic clock.
 */

export interface NsqdClock {
  /**
   * Learns from a date and the times of its request and response. Forgets everything else: another nsqd may have the
   * address now.
   */
  readonly dated: (date: number, asked: number, answered: number) => void
  /** Learns that nsqd has stored a message at this time. */
  readonly stored: (time: number, elapsed: number) => void
  /** Returns nsqd's time: the consumer's wall clock, corrected only if it is certainly slow or fast. */
  readonly now: (wall: number, elapsed: number) => number
}

/** HTTP dates omit up to this many milliseconds. */
const fraction = 1000

/** Makes the clock of an unknown nsqd. */
export const make = (): NsqdClock => {
  /** Bounds of the difference between nsqd's time and the monotonic time. */
  let [least, greatest] = [-Infinity, Infinity]
  return {
    dated: (date, asked, answered) => {
      least = date - answered
      greatest = date + fraction - asked
    },
    stored: (time, elapsed) => {
      least = Math.max(least, Math.min(time - elapsed, greatest))
    },
    now: (wall, elapsed) => Math.min(Math.max(wall, elapsed + least), elapsed + greatest)
  }
}
