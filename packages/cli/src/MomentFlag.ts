/** Flags with a moment: a time such as `2026-03-14T15:09:26Z`, or an age such as `2h`. */
import { Delay } from "@requeue/core"
import { LetterFilter } from "@requeue/operations"
import * as Flag from "effect/cli/Flag"

/** Makes a flag for a time, or for a duration above 0 and up to ten years. */
export const make = (name: string): Flag.Flag<LetterFilter.Moment> =>
  Flag.String(name).pipe(
    Flag.withMetavar("TIME"),
    Flag.mapTryCatch(
      (text): LetterFilter.Moment => {
        const moment = LetterFilter.momentOf(text)
        if (moment !== undefined) return moment
        const longest = Delay.format(LetterFilter.longest)
        throw new Error(
          `must be a time such as 2026-03-14T15:09Z, or a duration up to ${longest} such as 2h, got ${text}`
        )
      },
      (error) => (error instanceof Error ? error.message : String(error))
    )
  )
