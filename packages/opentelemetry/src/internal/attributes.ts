/**
 * Names and values of attributes: those of the conventions, and Requeue's own.
 *
 * https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
 */
import type { Attributes } from "@opentelemetry/api"
import type { BrokerError, Delivery, Message } from "@requeue/core"
import type { Outgoing } from "@requeue/core/port"
import * as Cause from "effect/Cause"
import * as Option from "effect/Option"

export const destination = "messaging.destination.name"
export const operationName = "messaging.operation.name"
const operationType = "messaging.operation.type"
const messageId = "messaging.message.id"
const bodySize = "messaging.message.body.size"
const batchCount = "messaging.batch.message_count"
/** https://opentelemetry.io/docs/specs/semconv/registry/attributes/error/ */
export const errorType = "error.type"

const attempt = "requeue.message.attempt"
export const rerun = "requeue.message.rerun"
const redrives = "requeue.message.redrives"
export const settlement = "requeue.settlement"
export const reason = "requeue.dead_letter.reason"
export const target = "requeue.dead_letter.queue"
export const delay = "requeue.retry.delay"
export const because = "requeue.backoff.because"
export const state = "requeue.message.state"
export const consumerState = "requeue.consumer.state"

/** Values of `messaging.system.name` that differ from the broker's name. */
const systems: Readonly<Record<string, string>> = { sqs: "aws.sqs" }

/** Values of `messaging.system`, the attribute's older name, that differ from the broker's name. Most tools still read it. */
const formerly: Readonly<Record<string, string>> = { sqs: "aws_sqs" }

export const system = (broker: string): Attributes => ({
  "messaging.system.name": systems[broker] ?? broker,
  "messaging.system": formerly[broker] ?? broker
})

export const operation = (name: string, type: string): Attributes => ({ [operationName]: name, [operationType]: type })

const identity = (id: string, body: Uint8Array, redriven: number): Attributes => ({
  [messageId]: id,
  [bodySize]: body.length,
  ...(redriven === 0 ? {} : { [redrives]: redriven })
})

/**
 * The attributes that have names in the conventions, by the facts of brokers.
 *
 * https://opentelemetry.io/docs/specs/semconv/messaging/rabbitmq/
 */
const conventions: ReadonlyArray<readonly [broker: string, fact: string, attribute: string]> = [
  ["rabbitmq", "routingKey", "messaging.rabbitmq.destination.routing_key"],
  ["rabbitmq", "correlationId", "messaging.message.conversation_id"]
]

/** Returns the attributes of the broker's own facts. Native options may be handwritten, so their values can be anything. */
const factual = (native: Message.Native = {}): Attributes => {
  const attributes: Attributes = {}
  for (const [broker, fact, attribute] of conventions) {
    const facts: { readonly [fact: string]: unknown } = Object(native[broker])
    const value = facts[fact]
    if (typeof value === "string" && value !== "") attributes[attribute] = value
  }
  return attributes
}

/** Returns the attributes of a message to publish. */
export const outgoing = ({ body, metadata, native }: Outgoing.Outgoing): Attributes => ({
  ...identity(metadata.id, body, metadata.redrives),
  ...factual(native)
})

/** Returns the attributes of a delivery. */
export const delivery = ({ attempts, body, metadata, native }: Delivery.Delivery): Attributes => ({
  ...identity(metadata.id, body, metadata.redrives),
  ...factual(native),
  [attempt]: attempts
})

/** Returns the error type of a call to the broker that failed, or had no answer. */
export const errorOf = (cause: Cause.Cause<BrokerError.BrokerError>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? "interrupted" : "_OTHER"),
    onSome: ({ reason }) => reason
  })

/** Returns the attributes of one message. For several messages, it returns their number. */
export const ofAll = <A>(all: ReadonlyArray<A>, ofOne: (one: A) => Attributes): Attributes =>
  all.length === 1 ? ofOne(all[0]!) : { [batchCount]: all.length }
