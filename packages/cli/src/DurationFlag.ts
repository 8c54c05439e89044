/** Flags that take a duration: `500ms`, `10s`, `15m`, `2h`, `"2 minutes"`. */
import { Delay } from "@requeue/core"
import * as Flag from "effect/cli/Flag"

const units: Readonly<Record<string, string>> = { ms: "millis", s: "seconds", m: "minutes", h: "hours", d: "days" }

/** Answers milliseconds; NaN where the text is no duration. */
export const parse = (text: string): number => {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)\s*([a-z]+)$/.exec(text.trim()) ?? []
  if (amount === undefined) return Number.NaN
  return Delay.toMillis(`${Number(amount)} ${units[unit] ?? unit}` as Delay.Input) // toMillis answers NaN for other units
}

/** Makes a flag for a duration above 0 and up to `max` milliseconds. Its value is in milliseconds. */
export const make = (name: string, max: number): Flag.Flag<number> =>
  Flag.String(name).pipe(
    Flag.withMetavar("DURATION"),
    Flag.mapTryCatch(
      (text) => {
        const millis = parse(text)
        if (millis > 0 && millis <= max) return millis
        throw new Error(`must be a duration up to ${Delay.format(max)} such as 500ms, 10s or "2 minutes", got ${text}`)
      },
      (error) => (error instanceof Error ? error.message : String(error))
    )
  )
