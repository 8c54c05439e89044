/** From a received message to a delivery. Pure, and total: every message of a foreign producer can be consumed. */
import { Metadata } from "@requeue/core/adapter-kit"
import type { Message, MessageAttributeValue } from "../client.ts"
import * as Wire from "../wire.ts"
import { receives } from "./receipt.ts"

/** Facts that the message itself does not have. */
export interface Context {
  /** Receives of this message that are known to have reached no handler. */
  readonly uncounted: number
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** A delivery without its receipt. */
export interface Decoded {
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  readonly attempts: number
  readonly metadata: Metadata.Metadata
}

/** Decodes a message. Its attempts are those of the metadata and the receives of this copy that were counted. */
export const toDelivery = (message: Message, { now, uncounted }: Context): Decoded => {
  const { MessageAttributes: attributes = {} } = message
  const encoded = attributes[Metadata.header]?.StringValue
  const known = encoded === undefined ? undefined : Metadata.decode(encoded, sentAt(message))
  const metadata = known ?? foreign(message, now)
  return {
    body: Wire.decodeBody(message.Body ?? "", attributes[Wire.encodingAttribute]?.StringValue),
    headers: headersOf(message, attributes),
    attempts: metadata.attempts + Math.max(1, receives(message) - uncounted),
    metadata: { ...metadata, deadLetter: metadata.deadLetter ?? nativeDeadLetter(message, now) }
  }
}

const foreign = (message: Message, now: number): Metadata.Metadata =>
  Metadata.make((message.MessageId ?? "sqs").slice(0, Metadata.idLimit), sentAt(message) ?? now)

/** When SQS took the message, in milliseconds since the epoch by its clock. */
const sentAt = ({ Attributes }: Message): number | undefined => {
  const sent = Number(Attributes?.SentTimestamp)
  return Number.isSafeInteger(sent) && sent > 0 ? sent : undefined
}

/** The dead letter that SQS itself has moved here; the message says where it was, and nothing else. */
const nativeDeadLetter = (message: Message, now: number): Metadata.DeadLetter | undefined => {
  const source = message.Attributes?.DeadLetterQueueSourceArn
  if (source === undefined) return undefined
  const received = Number(message.Attributes?.ApproximateFirstReceiveTimestamp)
  return {
    queue: source.slice(source.lastIndexOf(":") + 1),
    attempts: receives(message),
    reason: "retries-exhausted",
    at: received > 0 ? received : now,
    error: { name: "NativeRedrive", message: "moved by SQS: received more often than its redrive policy allows" }
  }
}

const headersOf = (
  { Attributes: system = {} }: Message,
  attributes: Readonly<Record<string, MessageAttributeValue>>
): Readonly<Record<string, string>> => {
  const headers: Record<string, string> = packed(attributes[Wire.headersAttribute]?.StringValue)
  for (const [name, attribute] of Object.entries(attributes)) {
    if (!Wire.isOwn(name)) headers[name] = textOf(attribute)
  }
  const { AWSTraceHeader: trace, MessageGroupId: group } = system
  if (group !== undefined && group !== Wire.defaultGroup) headers[Wire.headers.group] = group
  if (trace !== undefined) headers[Wire.headers.trace] = trace
  // A handler sees them, and the next copy carries them.
  return Object.freeze(headers)
}

/** An attribute as a header: text and numbers as they are, bytes as base64. */
export const textOf = ({ BinaryValue, StringValue }: MessageAttributeValue): string =>
  StringValue ?? Buffer.from(BinaryValue ?? []).toString("base64")

const packed = (text: string | undefined): Record<string, string> => {
  if (text === undefined) return {}
  try {
    const json: unknown = JSON.parse(text)
    if (typeof json !== "object" || json === null) return {}
    return Object.fromEntries(
      Object.entries(json).filter((entry): entry is [string, string] => typeof entry[1] === "string")
    )
  } catch {
    return {}
  }
}
