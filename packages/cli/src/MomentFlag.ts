/** Flags that take a moment: a time such as `2026-03-14T15:09:26Z`, or a duration such as `2h`, which is so long ago. */
import { Delay } from "@requeue/core"
import * as Flag from "effect/cli/Flag"
import * as DurationFlag from "./DurationFlag.ts"

/** A time, in milliseconds since 1970, or milliseconds before now. */
export type Moment = { readonly time: number } | { readonly ago: number }

/** Answers the moment in milliseconds since 1970. */
export const at = (moment: Moment, now: number): number => ("time" in moment ? moment.time : now - moment.ago)

/** A date without a time of the day is its beginning; one without a zone is of this machine's zone, or UTC for a date alone. */
const date = /^(\d{4})-(\d\d)(?:-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?)?$/

/** Answers milliseconds since 1970; NaN where there is no such time. `Date` takes 30 February for 2 March. */
const timeOf = (text: string): number => {
  const [, year, month, day = "1"] = date.exec(text) ?? []
  const isDay = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day)
  return isDay ? Date.parse(text) : Number.NaN
}

/** Makes a flag for a time, or for a duration above 0 and up to `max` milliseconds. */
export const make = (name: string, max: number): Flag.Flag<Moment> =>
  Flag.String(name).pipe(
    Flag.withMetavar("TIME"),
    Flag.mapTryCatch(
      (text): Moment => {
        const time = timeOf(text.trim())
        if (!Number.isNaN(time)) return { time }
        const ago = DurationFlag.parse(text)
        if (ago > 0 && ago <= max) return { ago }
        throw new Error(
          `must be a time such as 2026-03-14T15:09Z, or a duration up to ${Delay.format(max)} such as 2h, got ${text}`
        )
      },
      (error) => (error instanceof Error ? error.message : String(error))
    )
  )
