/** Formats times and ages that may be unknown. Times are in milliseconds since 1970. */
import { Delay } from "@requeue/core"

/** Formats a time in ISO 8601; returns `undefined` if the time is unknown. */
export const iso = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString()

/** Formats the age of a time; returns `-` if the time is unknown. */
export const show = (time: number | undefined, now: number): string =>
  time === undefined ? "-" : Delay.format(Math.max(0, now - time))
