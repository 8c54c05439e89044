/**
 * The wire format: the attributes that Requeue writes into a message of SQS, and how bodies are written.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
 */

/** How the body is written, unless it is plain text: `base64`, or `empty` for no bytes at all. */
export const encodingAttribute = "requeue-encoding"

/** The headers that cannot be attributes of their own, as a JSON object. */
export const headersAttribute = "requeue-headers"

/** Headers that are not attributes, because SQS has a field for each of them. */
export const headers = {
  group: "message-group-id",
  deduplication: "message-deduplication-id",
  trace: "x-amzn-trace-id"
} as const

/** The group of messages in a FIFO queue that name none: one for all, so that all are in order. */
export const defaultGroup = "requeue"

/** SQS carries the characters of XML 1.0. */
const legalText = /^[\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]*$/u

/** Whether SQS takes a text as a body or as the value of an attribute. */
export const isLegalText = (text: string): boolean => legalText.test(text)

const legalName = /^(?!aws\.|amazon\.)(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)$/i

const own: ReadonlySet<string> = new Set(["requeue", encodingAttribute, headersAttribute])

/** Whether an attribute is Requeue's own, and no header. */
export const isOwn = (name: string): boolean => own.has(name)

/** Whether attributes hold headers, beside what Requeue tells of the message itself. */
export const hasHeaders = (attributes: Readonly<Record<string, unknown>>): boolean => {
  for (const name in attributes) if (name === headersAttribute || !isOwn(name)) return true
  return false
}

/** Whether a header can be an attribute. SQS takes `__proto__`, and the SDK loses the value where it is received. */
export const isLegalAttribute = (name: string, value: string): boolean =>
  legalName.test(name) && name !== "__proto__" && !isOwn(name) && value !== "" && isLegalText(value)

/** Whether SQS takes a text as the id of a message group or of a deduplication. */
export const isLegalId = (id: string): boolean => /^[\x21-\x7e]{1,128}$/.test(id)

/** JSON in the characters that SQS carries; `JSON.stringify` escapes all but these two. */
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

/** How a body without bytes is written: SQS refuses one of no characters. */
const emptyBody = "-"

/** A body as SQS carries it: text as it is, other bytes in base64. */
export const encodeBody = (body: Uint8Array): { readonly text: string; readonly encoding: Encoding } => {
  if (body.length === 0) return { text: emptyBody, encoding: "empty" }
  const text = textOf(body)
  if (text !== undefined) return { text, encoding: undefined }
  return {
    text: Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64"),
    encoding: "base64"
  }
}

/** The bytes of text in base64, as RFC 4648 writes it, with padding; `undefined` for all else, which Node reads in part. */
export const fromBase64 = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, "base64")
  return bytes.toString("base64") === text ? bytes : undefined
}

/**
 * The bytes of a body; `undefined` where it is not written as its encoding says. Text in an encoding that Requeue does not
 * know is a foreign producer's, and taken as it is.
 */
export const decodeBody = (text: string, encoding: string | undefined): Uint8Array | undefined => {
  if (encoding === "base64") return fromBase64(text)
  if (encoding === "empty") return text === "" || text === emptyBody ? new Uint8Array() : undefined
  return Buffer.from(text)
}
