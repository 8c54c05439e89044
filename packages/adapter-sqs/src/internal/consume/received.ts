/**
 * Reads the messages of SQS's responses. The SDK does not check their types, and a foreign producer or a proxy may send
 * others: one wrong value must not affect other messages. Pure.
 */
import { OptionKind } from "@requeue/core/port"
import { objectsIn } from "../answer.ts"
import type { Message, MessageAttributeValue } from "../client.ts"

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

const attributeOf = (value: unknown): MessageAttributeValue | undefined => {
  if (!OptionKind.isObject(value)) return undefined
  const { BinaryValue, DataType, StringValue }: Partial<Record<keyof MessageAttributeValue, unknown>> = value
  return {
    DataType: textOf(DataType),
    ...(typeof StringValue === "string" ? { StringValue } : {}),
    ...(BinaryValue instanceof Uint8Array ? { BinaryValue } : {})
  }
}

const none = Object.freeze({})

/** Returns a record of the readable entries. The SDK loses the value of an attribute named `__proto__`. */
const record = <A>(given: unknown, read: (value: unknown) => A | undefined): Record<string, A> => {
  if (given === undefined) return none // Most messages have no attributes.
  const entries: Array<readonly [string, A]> = []
  if (OptionKind.isObject(given))
    for (const [name, value] of Object.entries(given)) {
      const known = read(value)
      if (known !== undefined) entries.push([name, known])
    }
  return Object.fromEntries(entries)
}

const isTexts = (given: unknown): given is Record<string, string> =>
  OptionKind.isObject(given) && Object.values(given).every((value) => typeof value === "string")

const messageOf = (value: object): Message => {
  const { Attributes, Body, MessageAttributes, MessageId, ReceiptHandle }: Partial<Record<keyof Message, unknown>> =
    value
  return {
    MessageId: textOf(MessageId),
    ReceiptHandle: textOf(ReceiptHandle),
    Body: textOf(Body),
    Attributes: isTexts(Attributes) ? Attributes : record(Attributes, textOf),
    MessageAttributes: record(MessageAttributes, attributeOf)
  }
}

/** Returns the messages in a response to `ReceiveMessage`. */
export const messagesIn = (answer: unknown): ReadonlyArray<Message> => objectsIn(answer, "Messages").map(messageOf)

/** Returns the readable attributes of a message. */
export const attributesIn = (
  attributes: unknown,
  read: (value: object) => unknown
): Record<string, MessageAttributeValue> =>
  record(attributes, (value) => (OptionKind.isObject(value) ? attributeOf(read(value)) : undefined))
