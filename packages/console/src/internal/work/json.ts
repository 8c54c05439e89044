/** JSON as text: it is shown with the numbers and keys that it has, and at a cost that its length bounds. */

const token = /\s*("[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+)/y

interface Token {
  readonly text: string
  /** The index behind it. */
  readonly end: number
}

/** The tokens, up to the first that is none. */
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

/** Whether two texts have the same number of tokens: where a key is repeated, what was parsed has fewer. */
export const isAlike = (one: string, other: string): boolean => [...tokens(one)].length === [...tokens(other)].length

/** The beginning of a JSON text, up to its last whole value, with all brackets closed. */
export const closed = (beginning: string): string => {
  const open: Array<string> = []
  let [cut, before] = [0, 0]
  for (const { end, text } of tokens(beginning)) {
    const closer = closers.get(text)
    if (closer !== undefined) open.push(closer)
    if (text === "}" || text === "]") open.pop()
    // What stands before a comma is whole.
    if (text === ",") cut = before
    if (closer !== undefined || text === "}" || text === "]") cut = end
    before = end
  }
  return `${beginning.slice(0, cut)}${open.toReversed().join("")}`
}

/** A JSON text with a line for each value, as far as `longest` characters. */
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
    put(text === ":" ? ": " : text)
    if (closers.has(text)) depth++
    if (size > longest) break
    before = text
  }
  return parts.join("")
}
