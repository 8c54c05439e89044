/** Routes messages through exchanges. Pure. https://www.rabbitmq.com/docs/exchanges */
import type * as Fields from "./Fields.ts"

/** A binding of a queue to an exchange. */
export interface Binding {
  readonly source: string
  readonly queue: string
  readonly key: string
  readonly arguments: Fields.Table
}

/** Whether the words of a routing key match a pattern: `*` is one word, `#` any number. */
const matchesTopic = (pattern: ReadonlyArray<string>, words: ReadonlyArray<string>): boolean => {
  const [first, ...rest] = pattern
  if (first === undefined) return words.length === 0
  if (first === "#")
    return Array.from({ length: words.length + 1 }, (_, at) => at).some((at) => matchesTopic(rest, words.slice(at)))
  return words.length > 0 && (first === "*" || first === words[0]) && matchesTopic(rest, words.slice(1))
}

const wordsOf = (key: string): ReadonlyArray<string> => (key === "" ? [] : key.split("."))

/** Whether headers match the arguments of a binding. `x-match` is `all` by default; names that begin with `x-` do not count. */
const matchesHeaders = ({ "x-match": how = "all", ...args }: Fields.Table, headers: Fields.Table): boolean => {
  const withX = how === "all-with-x" || how === "any-with-x"
  const wanted = Object.entries(args).filter(([name]) => withX || !name.startsWith("x-"))
  const holds = ([name, value]: readonly [string, unknown]): boolean =>
    Object.hasOwn(headers, name) && (value === null || JSON.stringify(headers[name]) === JSON.stringify(value))
  return String(how).startsWith("any") ? wanted.some(holds) : wanted.every(holds)
}

/** Whether an exchange of this type passes a message with this key and these headers to a binding. */
export const matches = (type: string, binding: Binding, key: string, headers: Fields.Table): boolean => {
  switch (type) {
    case "fanout":
      return true
    case "topic":
      return matchesTopic(wordsOf(binding.key), wordsOf(key))
    case "headers":
      return matchesHeaders(binding.arguments, headers)
    default:
      return binding.key === key
  }
}
