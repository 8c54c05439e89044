/** Flags that take a text. An empty one is refused: a script gives it where a variable that it uses is not set. */
import * as Flag from "effect/cli/Flag"

/** Makes a flag for a text that is not blank. */
export const make = (name: string): Flag.Flag<string> =>
  Flag.String(name).pipe(
    Flag.filter(
      (text) => text.trim() !== "",
      () => "must not be empty"
    )
  )
