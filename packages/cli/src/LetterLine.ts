/**
 * Dead letters as lines of JSON, exact enough to make the same letter again.
 *
 * | field | |
 * | --- | --- |
 * | `queue` | the dead-letter queue that it was in |
 * | `id`, `reason`, `error`, `at` | what people and `jq` look for; an import does not read them |
 * | `body` | its bytes: as text where they are UTF-8, else `{ "base64": … }` |
 * | `headers` | |
 * | `metadata` | the metadata as it travels with the message, with the keys of `Metadata` |
 */
import { type DeadLetters, Metadata, type Outgoing } from "@requeue/core"
import * as Age from "./Age.ts"
import * as Printable from "./Printable.ts"

/** A line that is no letter. */
export interface Refused {
  readonly detail: string
}

/** A mark at the beginning of a text is part of the body. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const toBody = (bytes: Uint8Array): string | { readonly base64: string } => {
  try {
    return decoder.decode(bytes)
  } catch {
    return { base64: Buffer.from(bytes).toString("base64") }
  }
}

/** Writes a letter of a dead-letter queue, without the end of the line. */
export const format = (queue: string, { body, headers, metadata, origin }: DeadLetters.DeadLetter): string =>
  Printable.json({
    queue,
    id: metadata.id,
    reason: origin?.reason,
    error: origin && `${origin.error.name}: ${origin.error.message}`,
    at: Age.iso(origin?.at ?? Metadata.publishedAt(metadata)),
    body: toBody(body),
    headers,
    metadata: Metadata.toJson(metadata)
  })

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isBase64 = (text: string): boolean => Buffer.from(text, "base64").toString("base64") === text

const bodyOf = (value: unknown): Uint8Array | undefined => {
  if (typeof value === "string") return Buffer.from(value)
  const base64 = isRecord(value) ? value["base64"] : undefined
  return typeof base64 === "string" && isBase64(base64) ? Buffer.from(base64, "base64") : undefined
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

/** Reads a line as the message that makes its letter again, in its own queue or in another one. */
export const parse = (line: string, to?: string): Outgoing.Outgoing | Refused => {
  const json = jsonOf(line)
  if (!isRecord(json)) return { detail: "it is no JSON object" }
  const queue = to ?? json["queue"]
  if (typeof queue !== "string" || queue === "") return { detail: "queue must be the name of a queue" }
  const body = bodyOf(json["body"])
  if (body === undefined) return { detail: `body must be text, or {"base64": …}` }
  const headers = headersOf(json["headers"])
  if (headers === undefined) return { detail: "headers must be an object of texts" }
  // As bytes, it would silently become another character.
  const hasHalf = [json["body"], ...Object.entries(headers).flat()].some(
    (text) => typeof text === "string" && !text.isWellFormed()
  )
  if (hasHalf) return { detail: "body and headers must not have half of a surrogate pair" }
  const metadata = Metadata.fromJson(json["metadata"])
  if (metadata === undefined)
    return { detail: `metadata must be what an export has written, with "v":1, "id", "a" and "t0"` }
  return { queue, body, headers, delay: 0, metadata }
}
