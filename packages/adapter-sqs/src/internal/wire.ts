/**
 * The wire format: what is written into a message of SQS, and what SQS allows.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */

/** How the body is written, where it cannot stand as it is: `base64`, or `empty` for no bytes at all. */
export const encodingAttribute = "requeue-encoding"

/** The headers that cannot be attributes of their own, as a JSON object. */
export const headersAttribute = "requeue-headers"

/** Headers that SQS itself has a place for. */
export const headers = {
  group: "message-group-id",
  deduplication: "message-deduplication-id",
  trace: "x-amzn-trace-id"
} as const

/** The group of messages that name none, in a FIFO queue: one for all, so that all are in order. */
export const defaultGroup = "requeue"

/** Bytes of a message and of a batch, attributes included. */
export const sizeLimit = 1024 * 1024

/** What Requeue's own attributes and a user's usual headers may take of it. */
const overhead = 16 * 1024

/** The largest body of any bytes: those that are no text are written as base64. */
export const maxBodySize = Math.floor(((sizeLimit - overhead) * 3) / 4)

/** Attributes of one message. */
export const attributeLimit = 10

/** Entries of one batch. */
export const batchLimit = 10

/** The longest delay of a send, in milliseconds. */
export const longestDelay = 900_000

/** The longest time that a message may be invisible, counted from its receipt, in milliseconds. */
export const longestVisibility = 43_200_000

/** SQS carries the characters of XML 1.0. */
const legalText = /^[\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]*$/u

export const isLegalText = (text: string): boolean => legalText.test(text)

const legalName = /^(?!aws\.|amazon\.)(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)$/i

const own: ReadonlySet<string> = new Set(["requeue", encodingAttribute, headersAttribute])

export const isOwn = (name: string): boolean => own.has(name)

/** Whether a header can be an attribute. */
export const isLegalAttribute = (name: string, value: string): boolean =>
  legalName.test(name) && !isOwn(name) && value !== "" && isLegalText(value)

/** Ids of groups and deduplication. */
export const isLegalId = (id: string): boolean => /^[\x21-\x7e]{1,128}$/.test(id)

/** JSON within SQS's characters; `JSON.stringify` escapes all others. */
export const json = (text: string): string =>
  text.replaceAll(/[\uFFFE\uFFFF]/g, (character) => `\\u${character.charCodeAt(0).toString(16)}`)
