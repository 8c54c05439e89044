/** Parses JSON. */
import { place, SyntaxProblem } from "./syntaxProblem.ts"

/** Whether the first `length` characters can begin a JSON text. */
const isBeginning = (text: string, length: number): boolean => {
  try {
    JSON.parse(text.slice(0, length))
    return true
  } catch (error) {
    const { message } = error as SyntaxError // What JSON.parse throws for text.
    const [, position] = /at position (\d+)/.exec(message) ?? []
    return /end of JSON|Unterminated/.test(message) || Number(position) >= length
  }
}

/** Parses a text. Throws a {@link SyntaxProblem}. */
export const parse = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text)
    return value
  } catch {
    // The parser gives the position of some errors only, and shows the text of others.
    let [good, bad] = [0, text.length + 1]
    while (bad - good > 1) {
      const middle = Math.floor((good + bad) / 2)
      if (isBeginning(text, middle)) good = middle
      else bad = middle
    }
    const before = text.slice(0, good).split("\n")
    const where = place({ line: before.length, col: before.at(-1)!.length + 1 }) // A split text has at least one part.
    throw new SyntaxProblem(`the file is not valid JSON ${where}`, "Fix the syntax there")
  }
}
