/** A message in a queue of a simulated server of SQS. */
import type * as Api from "./Api.ts"

/** The part of a message that its producer has sent. */
export interface Content {
  readonly body: string
  readonly attributes: Readonly<Record<string, Api.Attribute>>
  readonly group: string | undefined
  readonly deduplication: string | undefined
  readonly trace: string | undefined
}

/** A message in its queue. */
export interface Message {
  /** The server's number of this copy. */
  readonly copy: number
  /** SQS's id; a message that SQS moves to a dead-letter queue keeps it. */
  readonly id: string
  readonly content: Content
  /** Milliseconds since the epoch at which it was sent first. */
  readonly sent: number
  /** The ARN of the queue that SQS moved it from. */
  readonly source: string | undefined
  receives: number
  firstReceived: number | undefined
  state: "ready" | "delayed" | "inFlight" | "gone"
  /** When it is visible, in milliseconds since the epoch. */
  due: number
  /** The number of its last delivery; 0 before the first. */
  delivery: number
  /** Cancels its timers. */
  cancelDue: () => void
  cancelExpiry: () => void
}

/** SQS's id of a copy. */
export const idOf = (copy: number): string => `00000000-0000-4000-8000-${String(copy).padStart(12, "0")}`

/** The ASCII text that SQS sorts messages of a FIFO queue by. */
const sequenceOf = (copy: number): string => String(copy).padStart(20, "1")

const systemOf = (message: Message): Readonly<Record<string, string | undefined>> => {
  const { content, copy, firstReceived, receives, sent, source } = message
  return {
    SenderId: "AIDSIMULATED",
    SentTimestamp: String(sent),
    ApproximateReceiveCount: String(receives),
    ApproximateFirstReceiveTimestamp: String(firstReceived),
    MessageGroupId: content.group,
    MessageDeduplicationId: content.deduplication,
    SequenceNumber: content.deduplication === undefined ? undefined : sequenceOf(copy),
    AWSTraceHeader: content.trace,
    DeadLetterQueueSourceArn: source
  }
}

const isAsked = (names: ReadonlyArray<string>, name: string): boolean =>
  names.some(
    (asked) =>
      asked === "All" ||
      asked === ".*" ||
      asked === name ||
      (asked.endsWith(".*") && name.startsWith(asked.slice(0, -2)))
  )

const filtered = <A>(all: Readonly<Record<string, A | undefined>>, names: ReadonlyArray<string>) => {
  const entries = Object.entries(all).filter(([name, value]) => value !== undefined && isAsked(names, name))
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** Makes a message as a receive returns it: with the attributes that the call asks for, and no others. */
export const received = (message: Message, handle: string, body: Api.Body) => {
  const system = filtered(systemOf(message), [
    ...(body.AttributeNames ?? []),
    ...(body.MessageSystemAttributeNames ?? [])
  ])
  const attributes = filtered(message.content.attributes, body.MessageAttributeNames ?? [])
  return {
    MessageId: message.id,
    ReceiptHandle: handle,
    Body: message.content.body,
    ...(system === undefined ? {} : { Attributes: system }),
    ...(attributes === undefined ? {} : { MessageAttributes: attributes })
  }
}

/** A message as a receive returns it. */
export type Received = ReturnType<typeof received>
