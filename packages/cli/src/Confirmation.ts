/** Asks before something is done that cannot be undone. */
import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import { createInterface } from "node:readline/promises"
import { UsageError } from "./UsageError.ts"

export const yes = Flag.Boolean("yes").pipe(
  Flag.withAlias("y"),
  Flag.withDescription("Do not ask"),
  Flag.withDefault(false)
)

/** Whether the person at the terminal says yes. Fails where nobody is there to be asked. */
export const ask = (question: string): Effect.Effect<boolean, UsageError> =>
  process.stdin.isTTY && process.stderr.isTTY
    ? Effect.promise(async (signal) => {
        const terminal = createInterface({ input: process.stdin, output: process.stderr })
        try {
          return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `, { signal })).trim())
        } finally {
          terminal.close()
        }
      })
    : Effect.fail(new UsageError({ detail: "there is no terminal on which to ask", remedy: "Give --yes to go ahead" }))
