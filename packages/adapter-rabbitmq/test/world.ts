/** What tests share: a broker to run on, and another client that looks into its queues. */
import * as Workload from "@requeue/conformance/Workload"
import { Broker, type Service } from "@requeue/core/Broker"
import { BrokerError } from "@requeue/core/BrokerError"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { connect } from "amqplib"
import { randomUUID } from "node:crypto"
import { RabbitMqBroker, type RabbitMqOptions } from "../src/index.ts"

export { until } from "@requeue/conformance/Wait"
export { ids, publishAll } from "@requeue/conformance/Workload"

export const queueName = (base: string): string => `${base}-${randomUUID().slice(0, 8)}`

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const outgoing = (queue: string, id: string, details: Partial<Workload.Details> = {}) =>
  Workload.outgoing(queue, id, { now: Date.now(), ...details })

/** Runs a program on a broker, without logs. */
export const on = <A>(
  options: RabbitMqOptions.Options,
  program: (broker: Service) => Effect.Effect<A, unknown, Broker | Scope.Scope>
): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(RabbitMqBroker.make(options), (broker) =>
      Effect.provideService(program(broker), Broker, broker)
    ).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))
  )

/** The ids in a queue, seen by another client, and taken out. */
export const drainIds = async (url: string, queue: string): Promise<ReadonlyArray<string>> => {
  const model = await connect(url)
  model.on("error", () => {})
  const channel = await model.createChannel()
  channel.on("error", () => {})
  const found: Array<string> = []
  try {
    for (let message = await channel.get(queue, { noAck: true }); message !== false; ) {
      found.push(String(message.properties.messageId))
      message = await channel.get(queue, { noAck: true })
    }
  } finally {
    await model.close().catch(() => {})
  }
  return found
}

export const reasonOf = (error: unknown): unknown => (error instanceof BrokerError ? error.reason : undefined)
