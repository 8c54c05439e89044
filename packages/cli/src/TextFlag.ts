/** Flags with text. Empty text is refused, because a script passes it if a variable is not set. */
import * as Flag from "effect/cli/Flag"

/** Makes a flag for a text that is not blank. */
export const make = (name: string): Flag.Flag<string> =>
  Flag.String(name).pipe(
    Flag.filter(
      (text) => text.trim() !== "",
      () => "must not be empty"
    )
  )
