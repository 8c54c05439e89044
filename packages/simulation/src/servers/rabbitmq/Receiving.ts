/** Frames that a channel receives without a request, as amqplib 2.3.1 passes them on (`lib/channel.js`). */
import type { EventEmitter } from "node:events"
import type { ConfirmChannel } from "@requeue/adapter-rabbitmq/driver"
import type { Delivery } from "./Deliveries.ts"
import * as Fields from "./Fields.ts"
import type { Refusal } from "./Refusal.ts"
import type { Ends } from "./Session.ts"

/** A message as consumers receive it; `null` for a cancel of the server. */
export type Message = Parameters<Parameters<ConfirmChannel["consume"]>[1]>[0]

/** Called with the confirmation of a publication. */
export type Done = NonNullable<Parameters<ConfirmChannel["publish"]>[4]>

/** The channel that receives. */
interface Channel extends Pick<EventEmitter, "emit"> {
  readonly unconfirmed: Array<Done>
  readonly consumers: Map<string, (message: Message) => void>
  readonly closed: (refusal: Refusal) => void
}

/** The members of a message that the adapter reads. */
export const toMessage = (
  { content, deliveryTag, exchange, properties, redelivered, routingKey, table }: Delivery,
  fields: object
) => ({
  // Each delivery has its own bytes.
  content: Buffer.from(new Uint8Array(content).buffer),
  fields: { deliveryTag, redelivered, exchange, routingKey, ...fields },
  properties: { ...properties, headers: table === undefined ? undefined : Fields.decode(table), table }
})

/** Makes the receiver of a channel. `answer` sends a frame to the client, which ignores it once the channel is not open. */
export const make = (
  channel: Channel,
  answer: (arrive: () => void) => void,
  isOpen: () => boolean,
  arrived: (content: Buffer, delivery: Delivery) => void
): Ends => {
  const toClient = (arrive: () => void) => answer(() => isOpen() && arrive())
  let firstUnconfirmed = 1
  return {
    delivered: (consumerTag, delivery) =>
      toClient(() => {
        const message = toMessage(delivery, { consumerTag })
        arrived(message.content, delivery)
        channel.consumers.get(consumerTag)?.(message as unknown as Message) // It has the members that the adapter reads.
      }),
    returned: ({ content, exchange, properties, routingKey, table }) =>
      toClient(() => {
        const fields = { replyCode: 312, replyText: "NO_ROUTE", exchange, routingKey }
        const headers = table === undefined ? undefined : Fields.decode(table)
        channel.emit("return", { fields, content, properties: { ...properties, headers } })
      }),
    confirmed: (sequence, isStored) =>
      toClient(() => {
        const done = channel.unconfirmed[sequence - firstUnconfirmed]
        channel.unconfirmed.shift()
        firstUnconfirmed++
        done?.(isStored ? null : new Error("message nacked"), {})
      }),
    cancelled: (consumerTag) =>
      toClient(() => {
        channel.consumers.get(consumerTag)?.(null)
        channel.consumers.delete(consumerTag)
      }),
    closed: (refusal) => toClient(() => channel.closed(refusal))
  }
}
