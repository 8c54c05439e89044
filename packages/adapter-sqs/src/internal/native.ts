/** SQS's facts about a message, and native options of a send: types, checks and the core's form. */
import { type Message, OptionKind, type OptionNames } from "@requeue/core/port"
import { NativeOptions } from "@requeue/kit"
import type { Message as Received, MessageAttributeValue } from "./client.ts"
import * as Limits from "./limits.ts"
import * as Wire from "./wire.ts"

/** The key of both in a message's `native`. */
export const broker = "sqs"

/**
 * An attribute of an SQS message. `type` is `String`, `Number` or `Binary`, optionally with a label such as
 * `Number.float`; the value is bytes for `Binary`, otherwise text.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
 */
export interface Attribute {
  readonly type: string
  readonly value: string | Uint8Array
}

/**
 * SQS's facts about a delivered message. Each copy, such as a dead letter, has another id and other system attributes.
 */
export interface SqsNative {
  /** SQS's id of the message. */
  readonly messageId: string
  /** All attributes with their types, including Requeue's. */
  readonly attributes: Readonly<Record<string, Attribute>>
  /** The system attributes under SQS's names, such as `SenderId`, `SentTimestamp` and `SequenceNumber`. */
  readonly system: Readonly<Record<string, string>>
}

/** Options of `SqsNative.make`. */
export interface Options {
  /**
   * Attributes that are not text, at most 7: SQS accepts 10, and Requeue needs up to 3. They take precedence over
   * headers of the same name. Handlers also see them as headers, and copies keep their types. Default: none.
   */
  readonly attributes?: Readonly<Record<string, Attribute>> | undefined
}

/** Number of Requeue's attributes: metadata, body encoding, and headers that share an attribute. */
const reserved = 3
const most = Limits.attributes - reserved

const types = /^(String|Number|Binary)(\.[A-Za-z0-9_.-]+)?$/

const number = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i

/** Returns why SQS does not accept an attribute; `undefined` if it does. */
const problemOf = (name: string, attribute: unknown): string | undefined => {
  if (!Wire.isLegalAttribute(name, "-")) return "has a name that SQS does not accept, or that Requeue uses"
  const { type, value }: Partial<Attribute> = OptionKind.isObject(attribute) ? attribute : {}
  const [, kind] = (typeof type === "string" && type.length <= 256 && types.exec(type)) || []
  if (kind === undefined) return `must have a type, "String", "Number" or "Binary", got ${OptionKind.show(type)}`
  if (kind === "Binary")
    return value instanceof Uint8Array && value.length > 0 ? undefined : "must have a value of bytes that is not empty"
  if (typeof value !== "string" || !Wire.isLegalAttribute(name, value))
    return "must have a value of text that is not empty, in characters that SQS accepts"
  return kind === "String" || number.test(value) ? undefined : "must have a value that is a number as text"
}

const kinds: OptionNames.Of<Options> = { attributes: OptionKind.object("an object of attributes") }

type Values = Readonly<Record<string, MessageAttributeValue>>

const toValue = ({ type, value }: Attribute): MessageAttributeValue =>
  typeof value === "string"
    ? { DataType: type, StringValue: value }
    : { DataType: type, BinaryValue: new Uint8Array(value) }

/** The native options of a send: the attributes of the message. */
export const nativeOptions: NativeOptions.NativeOptions<Options, Values> = NativeOptions.define({
  broker,
  kinds,
  read: ({ attributes = {} }) => {
    const entries = Object.entries(attributes)
    if (entries.length > most) return `attributes must be at most ${most}, got ${entries.length}`
    for (const [name, attribute] of entries) {
      const problem = problemOf(name, attribute)
      if (problem !== undefined) return `attributes.${name} ${problem}`
    }
    return Object.fromEntries(entries.map(([name, attribute]) => [name, toValue(attribute)]))
  }
})

/** Returns SQS's facts about a received message. */
export const told = ({ Attributes = {}, MessageAttributes = {}, MessageId = "" }: Received): Message.Native => {
  const attributes = Object.entries(MessageAttributes).map(
    ([name, { BinaryValue, DataType = "", StringValue = "" }]) => [
      name,
      Object.freeze({ type: DataType, value: BinaryValue === undefined ? StringValue : new Uint8Array(BinaryValue) })
    ]
  )
  const facts = {
    messageId: MessageId,
    attributes: Object.freeze(Object.fromEntries(attributes)),
    system: Object.freeze({ ...Attributes })
  }
  return Object.freeze({ [broker]: Object.freeze(facts) })
}
