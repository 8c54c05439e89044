/**
 * The wire format: Requeue's attributes of an SQS message, and the encoding of bodies.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
 */

/** The encoding of a body that is not plain text: `base64`, or `empty` for no bytes. */
export const encodingAttribute = "requeue-encoding"

/** The headers that cannot be separate attributes, as a JSON object. */
export const headersAttribute = "requeue-headers"

/** Headers that are not attributes, because SQS has a field for each of them. */
export const headers = {
  group: "message-group-id",
  deduplication: "message-deduplication-id",
  trace: "x-amzn-trace-id"
} as const

/** The group of messages without a group in a FIFO queue: one for all, to keep them in order. */
export const defaultGroup = "requeue"

/** SQS accepts the characters of XML 1.0. */
const legalText = /^[\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]*$/u

/** Whether SQS accepts a text as a body or attribute value. */
export const isLegalText = (text: string): boolean => legalText.test(text)

const legalName = /^(?!aws\.|amazon\.)(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)$/i

const own: ReadonlySet<string> = new Set(["requeue", encodingAttribute, headersAttribute])

/** Whether an attribute is Requeue's, not a header. */
export const isOwn = (name: string): boolean => own.has(name)

/** Whether attributes hold headers in addition to Requeue's metadata. */
export const hasHeaders = (attributes: Readonly<Record<string, unknown>>): boolean => {
  for (const name in attributes) if (name === headersAttribute || !isOwn(name)) return true
  return false
}

/** Whether a header can be an attribute. SQS accepts `__proto__`, but the SDK loses its value on receive. */
export const isLegalAttribute = (name: string, value: string): boolean =>
  legalName.test(name) && name !== "__proto__" && !isOwn(name) && value !== "" && isLegalText(value)

/** Whether SQS accepts a text as a message group or deduplication id. */
export const isLegalId = (id: string): boolean => /^[\x21-\x7e]{1,128}$/.test(id)

/** Returns JSON in characters that SQS accepts; `JSON.stringify` escapes all except these two. */
export const json = (text: string): string =>
  text.replaceAll(/[\uFFFE\uFFFF]/g, (character) => `\\u${character.charCodeAt(0).toString(16)}`)

/** The value of {@link encodingAttribute}; `undefined` for text. */
export type Encoding = "base64" | "empty" | undefined

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textOf = (body: Uint8Array): string | undefined => {
  try {
    const text = decoder.decode(body)
    return isLegalText(text) ? text : undefined
  } catch {
    return undefined
  }
}

/** Represents a body without bytes: SQS refuses an empty one. */
const emptyBody = "-"

/** Encodes a body: text unchanged, other bytes in base64. */
export const encodeBody = (body: Uint8Array): { readonly text: string; readonly encoding: Encoding } => {
  if (body.length === 0) return { text: emptyBody, encoding: "empty" }
  const text = textOf(body)
  if (text !== undefined) return { text, encoding: undefined }
  return {
    text: Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64"),
    encoding: "base64"
  }
}

/** Decodes base64 of RFC 4648 with padding; `undefined` for anything else, which Node would decode in part. */
export const fromBase64 = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, "base64")
  return bytes.toString("base64") === text ? bytes : undefined
}

/**
 * Decodes a body; `undefined` if it does not match its encoding. Text in an unknown encoding is a foreign producer's,
 * and returned unchanged.
 */
export const decodeBody = (text: string, encoding: string | undefined): Uint8Array | undefined => {
  if (encoding === "base64") return fromBase64(text)
  if (encoding === "empty") return text === "" || text === emptyBody ? new Uint8Array() : undefined
  return Buffer.from(text)
}
