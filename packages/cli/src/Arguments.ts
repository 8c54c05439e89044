/** The words of a command line, before they are parsed. */
import * as Effect from "effect/Effect"
import { UsageError } from "./UsageError.ts"

/**
 * Whether a word that begins with `-` is the value of the flag before it. The parser reads `-2h` as `-2` and `-h`, and `-h`
 * shows the help with exit code 0, which a script would take for success. `-h` must be a separate word.
 */
const isValue = (word: string): boolean => /^-(?:[\d.]|[^-=]*h)./.test(word) || /^-[^-=]+h$/.test(word)

const isFlag = (word: string | undefined): word is string => /^--?[a-z][\w-]*$/i.test(word ?? "")

/**
 * Joins a value such as `-2h` to the flag before it, and refuses the value if no flag precedes it. Words after `--` stay
 * unchanged.
 */
export const read = (args: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>, UsageError> => {
  const end = args.includes("--") ? args.indexOf("--") : args.length
  const words: Array<string> = []
  for (const word of args.slice(0, end)) {
    const flag = words.at(-1)
    if (!isValue(word)) words.push(word)
    else if (isFlag(flag)) words[words.length - 1] = `${flag}=${word}`
    else return Effect.fail(new UsageError({ detail: `unrecognized flag: ${word}`, remedy: "Try requeue --help" }))
  }
  return Effect.succeed([...words, ...args.slice(end)])
}
