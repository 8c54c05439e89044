/**
 * Dead letters as lines of JSON, exact enough to make the same letter again: the form of `requeue dead-letters export`, of the
 * console's export, and of `requeue dead-letters import`.
 *
 * When to use: to keep letters outside of a broker, or to take them to another one.
 *
 * | field | |
 * | --- | --- |
 * | `queue` | the dead-letter queue that it was in |
 * | `id`, `reason`, `error`, `at` | for people and `jq`; an import ignores them |
 * | `body` | its bytes: as text if they are UTF-8, else `{ "base64": … }` |
 * | `headers` | |
 * | `key` | the key of the message; absent if it has none |
 * | `fairBy` | whose message it is; absent if it has none |
 * | `metadata` | the metadata as it travels with the message, with the keys of `Metadata` |
 * | `redacted` | `true` if something was hidden, else absent. Such a line cannot be imported |
 */
import { Metadata, type Outgoing } from "@requeue/core/port"
import type { DeadLetter } from "./internal/deadLetter.ts"

/** The result of parsing a line that is not a valid letter. */
export interface Refused {
  /** Why the line is not valid: a sentence without a full stop. */
  readonly detail: string
}

/** A byte order mark is part of the body. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const toBase64 = (bytes: Uint8Array): string => {
  let text = ""
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}

const fromBase64 = (text: string): Uint8Array | undefined => {
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
    return toBase64(bytes) === text ? bytes : undefined
  } catch {
    return undefined
  }
}

const toBody = (bytes: Uint8Array): string | { readonly base64: string } => {
  try {
    return decoder.decode(bytes)
  } catch {
    return { base64: toBase64(bytes) }
  }
}

/** Matches control characters of terminals (C0, C1) and of text direction, and ends of lines and paragraphs. */
export const controls = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu

/** Escapes the characters of JSON that would act on a terminal. Line ends stay, and the value does not change. */
export const escape = (json: string): string =>
  json.replaceAll(controls, (char) => (char === "\n" ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`))

const iso = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString()

/** The parts of a letter that a line has. */
export type Written = Pick<DeadLetter, "body" | "fairBy" | "headers" | "key" | "metadata" | "origin">

/**
 * Writes a letter of a dead-letter queue as a line of JSON, without the line end.
 *
 * @example
 * ```ts
 * import { Metadata } from "@requeue/core/port"
 * import { DeadLetters, LetterLine } from "@requeue/operations"
 *
 * const letter = { body: new TextEncoder().encode("{}"), headers: {}, metadata: Metadata.make("order-1", 0), origin: undefined }
 * const line = LetterLine.format("orders.dlq", letter)
 * LetterLine.parse(line) // => { queue: "orders.dlq", body: letter.body, headers: {}, delay: 0, metadata: letter.metadata }
 * ```
 */
export const format = (
  queue: string,
  { body, fairBy, headers, key, metadata, origin }: Written,
  {
    isRedacted = false
  }: {
    /** Whether a part of the letter was hidden. Default: false. */
    readonly isRedacted?: boolean | undefined
  } = {}
): string =>
  escape(
    JSON.stringify({
      queue,
      ...(isRedacted ? { redacted: true } : {}),
      id: metadata.id,
      reason: origin?.reason,
      error: origin && `${origin.error.name}: ${origin.error.message}`,
      at: iso(origin?.at ?? Metadata.publishedAt(metadata)),
      body: toBody(body),
      headers,
      key,
      fairBy,
      metadata: Metadata.toJson(metadata)
    })
  )

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const encoder = new TextEncoder()

const bodyOf = (value: unknown): Uint8Array | undefined => {
  if (typeof value === "string") return encoder.encode(value)
  const base64 = isRecord(value) ? value["base64"] : undefined
  return typeof base64 === "string" ? fromBase64(base64) : undefined
}

const headersOf = (value: unknown): Readonly<Record<string, string>> | undefined => {
  if (!isRecord(value)) return undefined
  const entries = Object.entries(value).flatMap(([name, text]) =>
    typeof text === "string" ? [[name, text] as const] : []
  )
  return entries.length === Object.keys(value).length ? Object.fromEntries(entries) : undefined
}

const jsonOf = (line: string): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/**
 * Reads a line as a message that recreates the letter in the queue of the line, or in the queue `to`. It refuses a line
 * with hidden parts.
 */
export const parse = (line: string, to?: string): Outgoing.Outgoing | Refused => {
  const json = jsonOf(line)
  if (!isRecord(json)) return { detail: "the line is not a JSON object" }
  if (json["redacted"] !== undefined) return { detail: "parts of the letter were hidden when it was exported" }
  const queue = to ?? json["queue"]
  if (typeof queue !== "string" || queue === "") return { detail: "queue must be the name of a queue" }
  const body = bodyOf(json["body"])
  if (body === undefined) return { detail: `body must be text, or {"base64": …}` }
  const headers = headersOf(json["headers"])
  if (headers === undefined) return { detail: "headers must be an object of texts" }
  const { fairBy, key } = json
  for (const [name, value] of Object.entries({ key, fairBy })) {
    const problem = value === undefined ? undefined : Metadata.problemOfId(value)
    if (problem !== undefined) return { detail: `${name} ${problem}` }
  }
  // As bytes, it would silently become another character.
  const hasHalf = [json["body"], ...Object.entries(headers).flat()].some(
    (text) => typeof text === "string" && !text.isWellFormed()
  )
  if (hasHalf) return { detail: "body and headers must not have half of a surrogate pair" }
  const metadata = Metadata.fromJson(json["metadata"])
  if (metadata === undefined)
    return { detail: `metadata must be what an export has written, with "v":1, "id", "a" and "t0"` }
  return {
    queue,
    body,
    headers,
    delay: 0,
    metadata,
    ...(typeof key === "string" ? { place: { key } } : {}),
    ...(typeof fairBy === "string" ? { fairBy } : {})
  }
}
