/**
 * The clock of an nsqd, by the date of an answer of its HTTP interface, which has whole seconds, and by the times at which it
 * stored messages. All times are in milliseconds: nsqd's and the consumer's wall clock since the epoch, `elapsed` by a
 * monotonic clock of this process.
 */

export interface NsqdClock {
  /** Learns from a date, and from when it was asked for and answered. Forgets all else: another nsqd may have the address now. */
  readonly dated: (date: number, asked: number, answered: number) => void
  /** Learns that nsqd has stored a message at this time. */
  readonly stored: (time: number, elapsed: number) => void
  /** The time of nsqd: the consumer's wall clock, unless that is certainly behind or ahead. */
  readonly now: (wall: number, elapsed: number) => number
}

/** Milliseconds that a date of HTTP leaves out at most. */
const fraction = 1000

/** The clock of an nsqd of which nothing is known. */
export const make = (): NsqdClock => {
  /** The least and the greatest that nsqd's time may be before the monotonic one. */
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
