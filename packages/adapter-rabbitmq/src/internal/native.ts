/** Facts of an AMQP message, and AMQP options for a send: their types, checks, and form in core. */
import { Delay, type Message, OptionKind, type OptionNames } from "@requeue/core/port"
import { NativeOptions } from "@requeue/kit"
import * as HeaderValues from "./headerValues.ts"
import { problemOf as nameProblem } from "./nameRules.ts"
import * as Wire from "./wire.ts"

/** The name under which core passes them. */
export const broker = "rabbitmq"

/**
 * The facts of a delivered message. A retry, a dead letter and a redrive have the facts of the first delivery, except
 * expiration and user, which no copy keeps.
 */
export interface RabbitMqNative {
  /** The exchange that the message was published to; empty for a message that was sent directly to its queue. */
  readonly exchange: string
  readonly routingKey: string
  /** All headers with their types, including those of the server and of Requeue. */
  readonly headers: Readonly<Record<string, unknown>>
  readonly appId: string | undefined
  readonly contentEncoding: string | undefined
  readonly contentType: string | undefined
  readonly correlationId: string | undefined
  /** Milliseconds, as text. */
  readonly expiration: string | undefined
  readonly messageId: string | undefined
  /** Whether the message survives a restart of the server in a durable queue. */
  readonly persistent: boolean
  readonly priority: number | undefined
  readonly replyTo: string | undefined
  /** Milliseconds since the epoch, in whole seconds. */
  readonly timestamp: number | undefined
  readonly type: string | undefined
  readonly userId: string | undefined
}

/** Options of `RabbitMqNative.make`. Texts have at most 255 bytes, the limit of AMQP. */
export interface Options {
  /**
   * The exchange to publish to, instead of the queue itself. It must exist or be among the adapter's `exchanges`, and
   * have a route to a queue. The empty name is the default exchange: it routes to the queue named by the routing key,
   * which is not declared, as for a reply to `replyTo`. A delay is not supported. The queue's name then only appears in
   * errors and telemetry. Default: the queue itself.
   */
  readonly exchange?: string | undefined
  /** The routing key for an exchange. Default: the queue's name. */
  readonly routingKey?: string | undefined
  /**
   * Whether the send fails with `Unroutable` when the exchange routes to no queue. With `false` the message is then
   * lost; use it for events that need no receiver. Default: true.
   */
  readonly mandatory?: boolean | undefined
  /**
   * Headers that need not be text, such as numbers for an exchange of type `headers`: text, finite numbers, booleans,
   * null, bytes, dates, and arrays and plain objects of these. They override text headers of the same names. Default:
   * none.
   */
  readonly headers?: Readonly<Record<string, unknown>> | undefined
  /** The sending program. Default: none. */
  readonly appId?: string | undefined
  /** The conversation or request that the message belongs to. Default: none. */
  readonly correlationId?: string | undefined
  /**
   * Time after which the server dead-letters the message in its queue, 1 ms to 28 days; a number is in milliseconds. It
   * applies to the first delivery: copies do not keep it, and a message with a delay cannot have one. Default: none.
   */
  readonly expiration?: Delay.DurationInput | undefined
  /** Whether the message survives a restart of the server. Default: true. */
  readonly persistent?: boolean | undefined
  /** The priority, 0 to 255, for a queue with priorities. Default: none, which counts as 0. */
  readonly priority?: number | undefined
  /** The queue for replies; they are sent like any message. Default: none. */
  readonly replyTo?: string | undefined
  /** The kind of message, such as `order.paid`. Default: none. */
  readonly type?: string | undefined
  /**
   * The user that logs in. The server rejects another user unless the user that logs in has the tag `impersonator`.
   * Default: none. https://www.rabbitmq.com/docs/validated-user-id
   */
  readonly userId?: string | undefined
}

const short: OptionKind.OptionKind = {
  expected: "text of at most 255 bytes",
  holds: (value) => typeof value === "string" && Buffer.byteLength(value) <= 255
}

const route: OptionKind.OptionKind = {
  expected: "text of at most 255 bytes without a line break or a broken surrogate",
  holds: (value) => typeof value === "string" && nameProblem(value) === undefined
}

/** The longest expiration, in milliseconds: 28 days. */
const longest = 28 * Delay.max

const kinds: OptionNames.Of<Options> = {
  exchange: route,
  routingKey: route,
  mandatory: OptionKind.flag,
  headers: OptionKind.object("an object of headers"),
  appId: short,
  correlationId: short,
  expiration: Delay.kind(1, longest),
  persistent: OptionKind.flag,
  priority: OptionKind.whole(0, 255),
  replyTo: short,
  type: short,
  userId: short
}

/** Returns why options of the right kinds are invalid together; `undefined` if they are valid. */
const problemOf = ({ exchange, headers = {}, mandatory, routingKey }: Options): string | undefined => {
  const taken = Object.keys(headers).find((name) => Wire.isOwn(name) || Wire.isServers(name))
  if (taken !== undefined) return `headers.${taken} is a header of the server or of Requeue. Give it another name`
  if (exchange === undefined && (routingKey !== undefined || mandatory === false))
    return `${routingKey === undefined ? "mandatory" : "routingKey"} is for an exchange. Name the exchange as well`
  if (exchange === "" && routingKey === undefined) return 'exchange "" needs a routingKey, which is the name of a queue'
  return HeaderValues.problemOf(headers, "headers")
}

/** The options of a message, as `RabbitMqNative.make` makes them. */
export const nativeOptions: NativeOptions.NativeOptions<Options, Options> = NativeOptions.define({
  broker,
  kinds,
  read: (options) => {
    const { headers } = options
    return (
      problemOf(options) ?? (headers === undefined ? options : { ...options, headers: HeaderValues.copyOf(headers) })
    )
  }
})

/** Wraps facts in the form that `RabbitMqNative.of` reads. */
export const told = (facts: RabbitMqNative): Message.Native =>
  Object.freeze({ [broker]: Object.freeze({ ...facts, headers: HeaderValues.copyOf(facts.headers) }) })
