/** Asks before a command does something irreversible. */
import * as Effect from "effect/Effect"
import * as Flag from "effect/cli/Flag"
import { createInterface } from "node:readline/promises"
import { Process } from "./Process.ts"
import { UsageError } from "./UsageError.ts"

export const yes = Flag.Boolean("yes").pipe(
  Flag.withAlias("y"),
  Flag.withDescription("Do not ask"),
  Flag.withDefault(false)
)

/**
 * Asks at the terminal, and returns whether the answer is yes. Ctrl-C ends the command. Fails with a `UsageError`
 * if there is no terminal.
 */
export const ask = Effect.fnUntraced(function* (question: string) {
  const { stderr, stdin } = yield* Process
  if (stdin.isTTY !== true || stderr.isTTY !== true) {
    return yield* new UsageError({
      detail: "there is no terminal to ask for confirmation",
      remedy: "Give --yes to go ahead"
    })
  }
  const answer = Effect.tryPromise(async (signal) => {
    const terminal = createInterface({ input: stdin, output: stderr })
    try {
      return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `, { signal })).trim())
    } finally {
      terminal.close()
    }
  })
  return yield* answer.pipe(Effect.catch(() => Effect.interrupt))
})
