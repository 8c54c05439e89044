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
export const kindOf = (value: unknown): string => {
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
