/**
 * Makes text of messages safe for a terminal. Any producer may send characters that move the cursor, change colours or the
 * direction of text, or end a line of a table. Such characters are replaced.
 */
import { LetterLine } from "@requeue/operations"

/** Shows text of several lines. Tabs and line ends stay. */
export const text = (value: string): string =>
  value.replaceAll(LetterLine.controls, (char) => (char === "\n" || char === "\t" ? char : "\ufffd"))

/** Shows text in one line, of at most `width` characters. Default: no limit. */
export const line = (value: string, width = Number.POSITIVE_INFINITY): string => {
  const one = text(value.replaceAll(/\s+/g, " ").trim())
  return one.length > width ? `${one.slice(0, width - 1)}…` : one
}

/** Returns a value as JSON in which characters that act on a terminal are escaped. Parsing the JSON returns the same value. */
export const json = (value: unknown, replacer?: (key: string, value: unknown) => unknown, indent?: number): string =>
  LetterLine.escape(JSON.stringify(value, replacer, indent))
