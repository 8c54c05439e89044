/** What tests share: a broker to run on, and consumers that write down their runs. */
import * as Workload from "@requeue/conformance/Workload"
import { Broker, type Service } from "@requeue/core/Broker"
import * as Consumer from "@requeue/core/Consumer"
import type { MessageHandler } from "@requeue/core/Handler"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { NsqBroker, type NsqOptions } from "../src/index.ts"

export { until } from "@requeue/conformance/Wait"
export { ids, publishAll } from "@requeue/conformance/Workload"

export const queueName = (base: string): string => `${base}-${randomUUID().slice(0, 8)}`

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const outgoing = (queue: string, id: string, details: Partial<Workload.Details> = {}) =>
  Workload.outgoing(queue, id, { now: Date.now(), ...details })

/** Runs a program on a broker, without logs. */
export const on = <A>(
  options: NsqOptions.Options,
  program: (broker: Service) => Effect.Effect<A, unknown, Broker | Scope.Scope>
): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(NsqBroker.make(options), (broker) => Effect.provideService(program(broker), Broker, broker)).pipe(
      Effect.scoped,
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )

export interface Run {
  readonly id: string
  readonly attempts: number
  /** Monotonic milliseconds. */
  readonly at: number
}

/** A consumer that writes down its runs. */
export const consume = (
  queue: string,
  runs: Array<Run>,
  options: Consumer.Options = {},
  handler: (message: Parameters<MessageHandler<string>>[0]) => unknown = () => {}
) =>
  Consumer.start<string>(queue, options, (message) => {
    runs.push({ id: message.id, attempts: message.attempts, at: performance.now() })
    return handler(message) as void
  })

/** A handler's failure. */
export const no = () => Effect.fail(new Error("no"))
