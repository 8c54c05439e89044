/** Times and ages that may not be known. Times are in milliseconds since 1970. */
import { Delay } from "@requeue/core"

/** A time in ISO 8601; `undefined` where it is not known. */
export const iso = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString()

/** How long ago a time is; `-` where it is not known. */
export const show = (time: number | undefined, now: number): string =>
  time === undefined ? "-" : Delay.format(Math.max(0, now - time))
