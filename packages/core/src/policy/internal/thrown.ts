/** Reads thrown values of any kind. Nothing here throws. */
import type { ErrorSummary } from "../../message/Metadata.ts"
import * as Thenable from "../../message/Thenable.ts"

/** Returns the name and message of any thrown value. */
export const summarize = (error: unknown): ErrorSummary => {
  // A thrown promise that rejects would be unhandled.
  Thenable.onRejected(error, () => {})
  if (!isRecord(error)) return { name: `NonError(${kindOf(error)})`, message: show(error) }
  const [tag, name, message] = [read(error, "_tag"), read(error, "name"), read(error, "message")]
  if (isError(error)) return { name: show(name), message: show(message) }
  return {
    name: [tag, name].find((name) => typeof name === "string") ?? `NonError(${kindOf(error)})`,
    message: typeof message === "string" ? message : show(error)
  }
}

/** The summary of a cause, which may be an object of any size: then only its message is read. */
export const summarizeCause = (cause: unknown): ErrorSummary =>
  !isRecord(cause) || isError(cause) || typeof read(cause, "message") === "string"
    ? summarize(cause)
    : { name: `NonError(${kindOf(cause)})`, message: "" }

/** The most errors of a chain, which may be a cycle. */
export const chainLimit = 10

/** The thrown error and its causes, the outermost first. An error without a cause that has `errors` is caused by the first. */
export const chainOf = (thrown: unknown): ReadonlyArray<ErrorSummary> => {
  const chain = [summarize(thrown)]
  const seen = new Set([thrown])
  let next = causeOf(thrown)
  while (next !== undefined && !seen.has(next) && chain.length < chainLimit) {
    chain.push(summarizeCause(next))
    seen.add(next)
    next = causeOf(next)
  }
  return chain
}

const causeOf = (error: unknown): unknown => {
  if (!isRecord(error)) return undefined
  const first = read(Object(read(error, "errors")), "0")
  return read(error, "cause") ?? (isRecord(first) && isError(first) ? first : undefined)
}

/** The most characters of a message with its causes: an error pattern is as long, so it shows them as well. */
const described = 200

/**
 * The message of an error and those of its causes: `fetch failed, caused by connect ECONNREFUSED`. A cause whose text is in it
 * already is left out. A long message is cut, and keeps half of the room.
 */
export const describe = (message: string, causes: ReadonlyArray<ErrorSummary>): string => {
  const texts = [message]
  for (const { message: cause, name } of causes) {
    if (cause === "" || texts.some((text) => text.includes(cause))) continue
    texts.push(/^(Error$|NonError\()/.test(name) ? cause : `${name}: ${cause}`)
  }
  const text = texts
    .slice(1)
    .map((cause) => `, caused by ${cause}`)
    .join("")
  const room = Math.max(described / 2, described - text.length)
  return text === "" || message.length <= room ? `${message}${text}` : `${message.slice(0, room - 1)}…${text}`
}

/** Returns the value of a property; `undefined` if reading it throws. */
export const read = (from: object, key: string): unknown => {
  try {
    return Reflect.get(from, key)
  } catch {
    return undefined
  }
}

/** Whether a value is an Error; `false` for a proxy that throws. */
export const isError = (u: object): boolean => {
  try {
    return u instanceof Error
  } catch {
    return false
  }
}

/** Returns a value as text. */
export const show = (value: unknown): string => {
  if (typeof value === "string") return value
  // JSON would make null of NaN.
  if (typeof value === "number") return String(value)
  for (const render of [JSON.stringify, unusual, String]) {
    try {
      const text = render(value)
      if (text !== undefined && (text !== "{}" || kindOf(value) === "object")) return text
    } catch {
      // Try the next function.
    }
  }
  return `an unprintable ${typeof value}`
}

/** Returns the text of an object without JSON members: its kind, and the status of an HTTP response. */
const unusual = (value: unknown): string | undefined => {
  const kind = kindOf(value)
  if (kind === "object" || !isRecord(value)) return undefined
  const [status, text] = [read(value, "status"), read(value, "statusText")]
  return [kind, ...[status, text].filter((part) => part !== undefined && part !== "")].join(" ")
}

/** Returns the kind of a value that is not an Error, for example `Response` or `null`. */
const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  if (typeof value !== "object") return typeof value
  const kind = tagOf(value)
  return kind === "Object" ? "object" : kind
}

const tagOf = (value: object): string => {
  try {
    return Object.prototype.toString.call(value).slice("[object ".length, -1)
  } catch {
    return "Object"
  }
}

/** Whether a value may have properties. */
export const isRecord = (u: unknown): u is object => typeof u === "object" && u !== null
