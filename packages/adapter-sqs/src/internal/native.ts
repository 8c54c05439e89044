/** Facts that a message tells of SQS, and wishes that a program may have: their types, the checks, and how the core passes them on. */
import { type Message, OptionKind, type OptionNames } from "@requeue/core/port"
import { NativeOptions } from "@requeue/kit"
import type { Message as Received, MessageAttributeValue } from "./client.ts"
import * as Limits from "./limits.ts"
import * as Wire from "./wire.ts"

/** The name under which the core passes them on. */
export const broker = "sqs"

/**
 * An attribute of a message, as SQS has it. `type` is `String`, `Number` or `Binary`, perhaps with a label as in
 * `Number.float`; the value is bytes for `Binary`, and else text.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
 */
export interface Attribute {
  readonly type: string
  readonly value: string | Uint8Array
}

/** Facts of a delivered message. Each copy, such as a dead letter, has its own id and system attributes. */
export interface SqsNative {
  /** The id that SQS has given the message. */
  readonly messageId: string
  /** All attributes with their types, those of Requeue included. */
  readonly attributes: Readonly<Record<string, Attribute>>
  /** The words of SQS on it, under its own names, such as `SenderId`, `SentTimestamp` and `SequenceNumber`. */
  readonly system: Readonly<Record<string, string>>
}

/** Options of `SqsNative.make`. */
export interface Options {
  /**
   * Attributes that are no text, at most 7: SQS takes 10, and Requeue needs up to 3. They beat headers of their names. A
   * handler sees them as headers as well, and each copy keeps their types. Default: none.
   */
  readonly attributes?: Readonly<Record<string, Attribute>> | undefined
}

/** Attributes of Requeue: its metadata, the encoding of the body, and the headers that are no attributes of their own. */
const reserved = 3
const most = Limits.attributes - reserved

const types = /^(String|Number|Binary)(\.[A-Za-z0-9_.-]+)?$/

const number = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i

/** Why SQS does not take an attribute; `undefined` when it does. */
const problemOf = (name: string, attribute: unknown): string | undefined => {
  if (!Wire.isLegalAttribute(name, "-")) return "has a name that SQS does not take, or that is Requeue's own"
  const { type, value }: Partial<Attribute> = OptionKind.isObject(attribute) ? attribute : {}
  const [, kind] = (typeof type === "string" && type.length <= 256 && types.exec(type)) || []
  if (kind === undefined) return `must have a type, "String", "Number" or "Binary", got ${OptionKind.show(type)}`
  if (kind === "Binary")
    return value instanceof Uint8Array && value.length > 0 ? undefined : "must have a value of bytes, and some"
  if (typeof value !== "string" || !Wire.isLegalAttribute(name, value))
    return "must have a value of text, and some, in characters that SQS takes"
  return kind === "String" || number.test(value) ? undefined : "must have a value that is a number as text"
}

const kinds: OptionNames.Of<Options> = { attributes: OptionKind.object("an object of attributes") }

type Values = Readonly<Record<string, MessageAttributeValue>>

const toValue = ({ type, value }: Attribute): MessageAttributeValue =>
  typeof value === "string"
    ? { DataType: type, StringValue: value }
    : { DataType: type, BinaryValue: new Uint8Array(value) }

/** The attributes that a message is to have, as `SqsNative.make` makes them. */
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

/** The facts of a received message. */
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
