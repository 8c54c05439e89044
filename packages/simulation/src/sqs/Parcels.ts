/** Messages of a simulated SQS in the world's terms. */
import { Metadata } from "@requeue/core/port"
import type { Delivery } from "../History.ts"
import type * as Api from "../servers/sqs/Api.ts"
import * as Receipts from "../servers/sqs/Receipts.ts"
import { keyHeader, type Parcel } from "../world/Parcel.ts"

/** The parts of a sent message that the world reads. */
type Sent = Pick<Api.Entry, "MessageBody" | "MessageAttributes">

const textOf = ({ MessageAttributes = {} }: Sent, name: string): string | undefined =>
  MessageAttributes[name]?.StringValue

/**
 * The header with the number of a delivery. Clients preserve headers, and so a copy shows its delivery, also where a client has
 * several deliveries of the same message.
 */
const deliveryHeader = "delivery"

/** Adds its number to a received message. */
export const numbered = <A extends Pick<Api.Entry, "MessageAttributes" | "ReceiptHandle">>(message: A): A => {
  const number = { DataType: "String", StringValue: String(Receipts.deliveryOf(message.ReceiptHandle ?? "")) }
  return { ...message, MessageAttributes: { ...message.MessageAttributes, [deliveryHeader]: number } }
}

/** The delivery of which a call sends a copy; `undefined` for another message, or a copy without headers. */
export const copied = (entry: Sent): Delivery | undefined => {
  const text = textOf(entry, deliveryHeader)
  return text === undefined ? undefined : Number(text)
}

/** The message that a call sends. */
export const fromEntry = (entry: Sent): Parcel => {
  const key = textOf(entry, keyHeader)
  return {
    body: Buffer.from(entry.MessageBody ?? ""),
    headers: key === undefined ? {} : { [keyHeader]: key },
    metadata: textOf(entry, Metadata.header)
  }
}

/** The part of a call that sends a message, to the end of its group if it has one. */
export const toEntry = ({ body, headers: { "message-group-id": group, ...headers }, metadata }: Parcel): Api.Entry => {
  const all = metadata === undefined ? headers : { ...headers, [Metadata.header]: metadata }
  return {
    Id: "0",
    ...(group === undefined ? {} : { MessageGroupId: group, MessageDeduplicationId: headers[keyHeader] }),
    MessageBody: Buffer.from(body).toString(),
    MessageAttributes: Object.fromEntries(
      Object.entries(all).map(([name, StringValue]) => [name, { DataType: "String", StringValue }])
    )
  }
}
