/** What tests share: a broker to run on, and consumers that write down their runs. */
import * as Control from "@requeue/conformance/Control"
import * as Measured from "@requeue/conformance/Measured"
import * as Workload from "@requeue/conformance/Workload"
import { Broker, Consumer, type Handler } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { NsqBroker, type NsqOptions } from "../src/index.ts"

export { found, until } from "@requeue/conformance/Wait"
export { ids, publishAll } from "@requeue/conformance/Workload"

/** Milliseconds by which a due message may be late on one nsqd, beyond the adapter's own resolution. */
export const lateness = 100

export const queueName = (base: string): string => `${base}-${randomUUID().slice(0, 8)}`

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const outgoing = (queue: string, id: string, details: Partial<Workload.Details> = {}) =>
  Workload.outgoing(queue, id, { now: Date.now(), ...details })

type Program<A> = (broker: Broker.Service) => Effect.Effect<A, unknown, Broker.Broker | Scope.Scope>

const onBroker = <A>(options: NsqOptions.Options, program: Program<A>): Effect.Effect<A, unknown> =>
  Effect.flatMap(NsqBroker.make(options), (broker) =>
    Effect.provideService(program(broker), Broker.Broker, broker)
  ).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))

/** Runs a program on a broker, without logs. */
export const on = <A>(options: NsqOptions.Options, program: Program<A>): Promise<A> =>
  Effect.runPromise(onBroker(options, program))

/** Monotonic milliseconds since the epoch, with fractions. */
export const now = (): number => performance.timeOrigin + performance.now()

/** A test that runs a program on a broker with controls beside it, and again where they were too late to tell. */
export const measured =
  (
    options: NsqOptions.Options,
    program: (broker: Broker.Service, control: Control.Service) => ReturnType<Program<void>>
  ) =>
  (context: Measured.TestContext): Promise<void> =>
    Measured.inTest(
      context,
      onBroker(options, (broker) =>
        Effect.flatMap(Control.make(broker, queueName("control")), (control) => program(broker, control))
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
  handler: (message: Parameters<Handler.MessageHandler<string>>[0]) => unknown = () => {}
) =>
  Consumer.start<string>(queue, options, (message) => {
    runs.push({ id: message.id, attempts: message.attempts, at: now() })
    return handler(message) as void
  })

/** A handler's failure. */
export const no = () => Effect.fail(new Error("no"))
