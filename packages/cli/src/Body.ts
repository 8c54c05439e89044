/** A message's body as text and as JSON. */
import type { Message } from "@requeue/core"
import { gunzipSync, inflateSync } from "node:zlib"
import * as Printable from "./Printable.ts"

/** The largest number of bytes that a body may have after decompression: a few kilobytes may hold gigabytes. */
const maxOutputLength = 16 * 1024 * 1024

const inflates: ReadonlyMap<string | undefined, typeof gunzipSync> = new Map([
  ["gzip", gunzipSync],
  ["deflate", inflateSync]
])

/** Returns the decompressed body if the headers name its compression correctly; otherwise the body itself. */
export const plain = ({
  body,
  headers
}: {
  readonly body: Uint8Array
  readonly headers: Message.Headers
}): Uint8Array => {
  try {
    return inflates.get(headers["content-encoding"]?.toLowerCase())?.(body, { maxOutputLength }) ?? body
  } catch {
    return body
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true })

/** Decodes bytes as UTF-8; returns `undefined` if they are not text. */
const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** Decodes bytes as a JSON value, else as text, else returns `{ base64 }`. */
export const toJson = (bytes: Uint8Array): unknown => {
  const text = textOf(bytes)
  if (text === undefined) return { base64: Buffer.from(bytes).toString("base64") }
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Shows bytes as text, or in base64 if they are not text. */
export const show = (bytes: Uint8Array): string => {
  const text = textOf(bytes)
  return text === undefined ? `base64:${Buffer.from(bytes).toString("base64")}` : Printable.text(text)
}

/** Shows bytes in one line of at most `width` characters; default 120. */
export const line = (bytes: Uint8Array, width = 120): string => Printable.line(show(bytes), width)

/** Returns the broker's native facts of a message as a JSON value. Bytes in the facts become `{ base64 }`. */
export const plainFacts = (facts: unknown): unknown => {
  if (facts instanceof Uint8Array) return { base64: Buffer.from(facts).toString("base64") }
  if (Array.isArray(facts)) return facts.map(plainFacts)
  return typeof facts === "object" && facts !== null
    ? Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, plainFacts(value)]))
    : facts
}
