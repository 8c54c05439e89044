/** Flags that take a duration: `500ms`, `10s`, `15m`, `2h`, `"2 minutes"`. */
import { Delay } from "@requeue/core"
import * as Flag from "effect/cli/Flag"

/** Makes a flag for a duration above 0 and up to `max` milliseconds. The flag's value is in milliseconds. */
export const make = (name: string, max: number): Flag.Flag<number> =>
  Flag.String(name).pipe(
    Flag.withMetavar("DURATION"),
    Flag.mapTryCatch(
      (text) => {
        const millis = Delay.ofText(text)
        if (millis > 0 && millis <= max) return millis
        throw new Error(`must be a duration up to ${Delay.format(max)} such as 500ms, 10s or "2 minutes", got ${text}`)
      },
      (error) => (error instanceof Error ? error.message : String(error))
    )
  )
