/** The words of a command line, before they are parsed. */
import * as Effect from "effect/Effect"
import { UsageError } from "./UsageError.ts"

/**
 * Whether a word that begins like flags is a value. The parser reads `-2h` as `-2` and `-h`, and `-h` shows the help with
 * exit code 0, so that a script would believe that its command has run. Help is asked for by a word of its own.
 */
const isValue = (word: string): boolean => /^-(?:[\d.]|[^-=]*h)./.test(word) || /^-[^-=]+h$/.test(word)

const isFlag = (word: string | undefined): word is string => /^--?[a-z][\w-]*$/i.test(word ?? "")

/** Gives such a value to the flag before it; refuses it where there is none. Behind `--`, all words are as they are. */
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
