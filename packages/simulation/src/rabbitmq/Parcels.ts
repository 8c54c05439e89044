/** Messages of a simulated RabbitMQ in the world's terms. */
import { Metadata } from "@requeue/core/port"
import * as Fields from "../servers/rabbitmq/Fields.ts"
import type { Message, Publication } from "../servers/rabbitmq/Message.ts"
import { keyHeader, type Parcel } from "../world/Parcel.ts"

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** The parcel that a message carries. */
export const from = (message: Pick<Message, "content" | "table">): Parcel => {
  const all = Fields.headersOf(message)
  const key = textOf(all[keyHeader])
  return {
    body: message.content,
    headers: key === undefined ? {} : { [keyHeader]: key },
    metadata: textOf(all[Metadata.header])
  }
}

/** The publication of a producer without Requeue. */
export const toPublication = (queue: string, { body, headers, metadata }: Parcel, at: number): Publication => {
  const { id: messageId, ...others } = headers
  return {
    exchange: "",
    routingKey: queue,
    properties: { deliveryMode: 2, timestamp: Math.floor(at / 1000), messageId },
    table: Fields.encode(metadata === undefined ? others : { ...others, [Metadata.header]: metadata }),
    content: Buffer.from(body)
  }
}
