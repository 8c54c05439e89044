/** JSON as text. Its numbers and keys stay as written, and the cost is limited by its length. */

const token = /\s*("[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+)/y

interface Token {
  readonly text: string
  /** The index after it. */
  readonly end: number
}

/** The tokens up to the first error. */
const tokens = function* (text: string): Generator<Token> {
  const reader = new RegExp(token)
  for (let found = reader.exec(text); found !== null; found = reader.exec(text)) {
    yield { text: found[1]!, end: reader.lastIndex }
  }
}

const closers: ReadonlyMap<string, string> = new Map([
  ["{", "}"],
  ["[", "]"]
])

/** Whether two texts have the same number of tokens. With a repeated key, the parsed value has fewer. */
export const isAlike = (one: string, other: string): boolean => [...tokens(one)].length === [...tokens(other)].length

/** A JSON string without an end, up to its last whole character. */
const string = /^\s*"[^"\\]*(?:\\(?:u[\da-fA-F]{4}|["\\/bfnrt])[^"\\]*)*/

/** The beginning of a JSON text, up to its last whole value or inside a string, with all brackets closed. */
export const closed = (beginning: string): string => {
  const open: Array<string> = []
  let [cut, before, last] = [0, 0, ""]
  for (const { end, text } of tokens(beginning)) {
    const closer = closers.get(text)
    if (closer !== undefined) open.push(closer)
    if (text === "}" || text === "]") open.pop()
    // The value before a comma is whole.
    if (text === ",") cut = before
    if (closer !== undefined || text === "}" || text === "]") cut = end
    before = end
    last = text
  }
  const isValue = last === ":" || last === "[" || (last === "," && open.at(-1) === "]")
  const [text] = isValue ? (string.exec(beginning.slice(before)) ?? []) : []
  const shown = text === undefined ? beginning.slice(0, cut) : `${beginning.slice(0, before)}${text}"`
  return `${shown}${open.toReversed().join("")}`
}

/** A string without needless escapes, which many encoders write for all letters beyond ASCII. */
const readable = (token: string): string => (token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token)

/** Formats valid JSON with one value a line, up to `longest` characters. */
export const indented = (json: string, longest: number): string => {
  const parts: Array<string> = []
  let [depth, size, before] = [0, 0, ""]
  const put = (text: string) => {
    parts.push(text)
    size += text.length
  }
  const line = () => put(`\n${"  ".repeat(depth)}`)
  for (const { text } of tokens(json)) {
    const isEnd = text === "}" || text === "]"
    if (isEnd) depth--
    if (isEnd ? !closers.has(before) : closers.has(before) || before === ",") line()
    put(text === ":" ? ": " : readable(text))
    if (closers.has(text)) depth++
    if (size > longest) break
    before = text
  }
  return parts.join("")
}
