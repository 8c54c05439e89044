/**
 * The headers of a message as handlers see them. Pure and total: any value that a foreign producer wrote becomes text.
 */
import type { Properties } from "../client.ts"
import * as Wire from "../wire.ts"

/** Returns the producer's headers, plus content type and content encoding unless headers have these names. */
export const textHeaders = (properties: Properties): Readonly<Record<string, string>> => {
  const { contentEncoding, contentType, headers: native = {} } = properties
  const headers: Record<string, string> = {}
  if (typeof contentType === "string" && native["content-type"] === undefined) headers["content-type"] = contentType
  if (typeof contentEncoding === "string" && native["content-encoding"] === undefined)
    headers["content-encoding"] = contentEncoding
  for (const name in native) {
    if (Wire.isOwn(name) || Wire.isServers(name)) continue
    const value = textOf(native[name])
    // Assigning `__proto__` would lose it. Defining every header would cost each message a microsecond.
    if (name === "__proto__") Object.defineProperty(headers, name, { value, enumerable: true })
    else headers[name] = value
  }
  // The handler and the next copy share them.
  return Object.freeze(headers)
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textOfBytes = (bytes: Buffer): string => {
  try {
    return decoder.decode(bytes)
  } catch {
    return bytes.toString("base64")
  }
}

const textOf = (value: unknown): string => {
  if (typeof value === "string") return value
  if (Buffer.isBuffer(value)) return textOfBytes(value)
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value)
}
