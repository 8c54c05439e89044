/** Flags that take a number within bounds. */
import * as Flag from "effect/cli/Flag"

/** Makes a flag for a whole number from `min` to `max`. */
export const whole = (name: string, min: number, max: number): Flag.Flag<number> =>
  Flag.Int(name).pipe(
    Flag.withMetavar("N"),
    Flag.filter(
      (value) => value >= min && value <= max,
      (value) => `must be a whole number from ${min} to ${max}, got ${value}`
    )
  )

/** Makes a flag for a number above 0 and up to `max`. */
export const positive = (name: string, max: number): Flag.Flag<number> =>
  Flag.Finite(name).pipe(
    Flag.withMetavar("N"),
    Flag.filter(
      (value) => value > 0 && value <= max,
      (value) => `must be a number above 0 and up to ${max}, got ${value}`
    )
  )
