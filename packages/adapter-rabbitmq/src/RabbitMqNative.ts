/**
 * Facts of AMQP beyond headers: the exchange and routing key of a message, and its properties.
 *
 * When to use: to publish to your own exchange, to send properties that other programs read, and to read theirs. Code
 * for several brokers can read the facts of each: `of` returns `undefined` for other brokers, and other adapters ignore
 * the result of `make`.
 *
 * @example
 * ```ts
 * import { RabbitMqNative } from "@requeue/adapter-rabbitmq"
 * import type { Handler } from "@requeue/core"
 *
 * const native = RabbitMqNative.make({ exchange: "events", routingKey: "order.paid", type: "order.paid" })
 * const handler = async (message: Handler.Received<unknown>) => RabbitMqNative.of(message)?.routingKey
 * ```
 */
import type { Message } from "@requeue/core/port"
import * as Native from "./internal/native.ts"
import type { Options, RabbitMqNative } from "./internal/native.ts"

export type { Options, RabbitMqNative } from "./internal/native.ts"

/**
 * Makes native options for one message. Pass the result as the option `native` of `send`, or of an entry of `sendBatch`.
 *
 * @throws RangeError when an option is unknown, has the wrong type or is out of range, or needs an exchange and none is
 * named
 *
 * @example
 * ```ts
 * import { RabbitMqBroker, RabbitMqNative } from "@requeue/adapter-rabbitmq"
 * import { connect } from "@requeue/core/promise"
 *
 * const main = async () => {
 *   await using broker = await connect(RabbitMqBroker.layer({ exchanges: { events: { type: "topic" } } }))
 *   const event = { exchange: "events", routingKey: "order.paid", correlationId: "c1" }
 *   // No queue has to receive it.
 *   const native = RabbitMqNative.make({ ...event, mandatory: false })
 *   await broker.send("order.paid", { total: 9.5 }, { native })
 * }
 * ```
 */
export const make = (options: Options): Message.Native => Native.nativeOptions.make("RabbitMqNative.make", options)

/** Returns the facts of a message or a dead letter from RabbitMQ; `undefined` for another broker. */
export const of = ({ native }: { readonly native?: Message.Native | undefined }): RabbitMqNative | undefined =>
  native?.[Native.broker] as RabbitMqNative | undefined // The adapter makes this value.
