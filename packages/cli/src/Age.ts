/** Times and ages that may be unknown. Times are in milliseconds since 1970. */
import { Delay } from "@requeue/core"

/** A time in ISO 8601; `undefined` if it is unknown. */
export const iso = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString()

/** The age of a time; `-` if it is unknown. */
export const show = (time: number | undefined, now: number): string =>
  time === undefined ? "-" : Delay.format(Math.max(0, now - time))
