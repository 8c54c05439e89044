/** Flags that take a duration: `500ms`, `10s`, `15m`, `2h`, `"2 minutes"`. */
import { Delay } from "@requeue/core"
import * as Flag from "effect/cli/Flag"

const units: Readonly<Record<string, string>> = { ms: "millis", s: "seconds", m: "minutes", h: "hours", d: "days" }

/** Milliseconds, NaN where the text is no duration. */
const parse = (text: string): number => {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)\s*([a-z]+)$/.exec(text.trim()) ?? []
  return amount === undefined ? Number.NaN : Delay.toMillis(`${Number(amount)} ${units[unit] ?? unit}` as Delay.Input)
}

/** From more than 0 to `max` milliseconds. */
export const make = (name: string, max: number): Flag.Flag<number> =>
  Flag.String(name).pipe(
    Flag.withMetavar("DURATION"),
    Flag.mapTryCatch(
      (text) => {
        const millis = parse(text)
        if (millis > 0 && millis <= max) return millis
        throw new Error(`must be a duration up to ${Delay.format(max)} such as 500ms, 10s or "2 minutes", got ${text}`)
      },
      (error) => (error as Error).message
    )
  )
