/** The flag `--all` of commands that remove. Without it they require a filter, so a forgotten flag removes nothing. */
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { UsageError } from "./UsageError.ts"

/** Makes the flag `--all`; `things` names what the command removes. */
export const all = (things: string) =>
  Flag.Boolean("all").pipe(
    Flag.withDescription(`All ${things} of these queues. Without it, a filter is required`),
    Flag.withDefault(false)
  )

/**
 * Refuses a call with neither `--all` nor a filter, and one with both. `which` completes the error "nothing says which".
 */
export const check = (
  given: { readonly isAll: boolean; readonly isFiltered: boolean },
  which: string,
  example: string
): Effect.Effect<void, UsageError> => {
  if (given.isAll !== given.isFiltered) return Effect.void
  return Effect.fail(
    new UsageError(
      given.isAll
        ? { detail: "--all and filters do not go together", remedy: "Give one of them" }
        : { detail: `nothing says which ${which} to remove`, remedy: `Give --all, or a filter such as ${example}` }
    )
  )
}
