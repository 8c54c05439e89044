/**
 * Facts of AMQP beyond headers: the exchange and the routing key of a message, and its properties.
 *
 * When to use: to publish to an exchange of your own, to send properties that other programs read, and to read those that
 * others have sent. Code that runs on several brokers asks for the facts of each: `of` answers `undefined` elsewhere, and
 * other adapters pass over what `make` answers.
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
 * Wishes for one message that is sent, as `native` of `send`, or of an entry of `sendBatch`.
 *
 * @throws RangeError when an option is unknown, of another kind or out of its range, or is for an exchange and none is named
 *
 * @example
 * ```ts
 * import { RabbitMqBroker, RabbitMqNative } from "@requeue/adapter-rabbitmq"
 * import { connect } from "@requeue/core/promise"
 *
 * const main = async () => {
 *   await using broker = await connect(RabbitMqBroker.layer({ exchanges: { events: { type: "topic" } } }))
 *   const event = { exchange: "events", routingKey: "order.paid", correlationId: "c1" }
 *   // Nobody has to hear it.
 *   const native = RabbitMqNative.make({ ...event, mandatory: false })
 *   await broker.send("order.paid", { total: 9.5 }, { native })
 * }
 * ```
 */
export const make = (options: Options): Message.Native => Native.nativeOptions.make("RabbitMqNative.make", options)

/** The facts of a message or a dead letter from RabbitMQ; `undefined` for one of another broker. */
export const of = ({ native }: { readonly native?: Message.Native | undefined }): RabbitMqNative | undefined =>
  native?.[Native.broker] as RabbitMqNative | undefined // The adapter has made them.
