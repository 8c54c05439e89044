/**
 * Telemetry: functions for tracing and metrics that are called around each send, handler run and settlement.
 *
 * Without telemetry, which is the default, a message costs no more than a comparison with `undefined`.
 *
 * When to use: to connect a system of traces and metrics. For OpenTelemetry, use `@requeue/opentelemetry`.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Producer } from "@requeue/core"
 * import { Telemetry } from "@requeue/core/port"
 * import { Effect, Layer } from "effect"
 *
 * const sizes: Array<number> = []
 * const telemetry: Telemetry.Service = {
 *   send: (_broker, messages, publish) => {
 *     sizes.push(...messages.map(({ body }) => body.length))
 *     return publish(messages)
 *   },
 *   consumer: () => ({ onEvent: () => {}, run: () => Telemetry.unwatched, settle: (_, settle) => settle, close: () => {} })
 * }
 * const program = Effect.flatMap(Producer.make("orders"), ({ send }) => send({ id: 7 }))
 * const layer = Layer.merge(MemoryBroker.layer(), Layer.succeed(Telemetry.Telemetry, telemetry))
 *
 * await Effect.runPromise(Effect.provide(program, layer))
 * sizes // => [8]
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Counts, Service as Broker, SettleFailure, SettleRequest } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import * as Log from "../port/Log.ts"
import type { Delivery } from "../message/Delivery.ts"
import type { Hook } from "./Event.ts"
import type { ConsumerHealth } from "./Health.ts"
import type { ErrorSummary } from "../message/Metadata.ts"
import type { Outgoing } from "../message/Outgoing.ts"
import { summarize } from "../policy/Failure.ts"

/** How a handler run ended. The error is redacted by the policy's `redact`. */
export type Ending =
  | { readonly _tag: "Succeeded" }
  | { readonly _tag: "Failed"; readonly error: ErrorSummary }
  | { readonly _tag: "Interrupted" }

/** The telemetry of one handler run. */
export interface Run {
  /**
   * Calls the handler so its spans belong to this run, and returns its result. When the handler returns an Effect,
   * this returns that Effect, made part of the run.
   */
  readonly within: <A>(handler: () => A) => A
  /** Called once, when the run has ended and its messages are not yet settled. */
  readonly end: (ending: Ending) => void
}

/** The telemetry of one consumer. None of its functions may throw. */
export interface Watch {
  /** Called with every event, before the consumer's own `onEvent`. */
  readonly onEvent: Hook
  /** Called before a handler run. `rerun` counts earlier runs of the same delivery. */
  readonly run: (deliveries: ReadonlyArray<Delivery>, rerun: number) => Run
  /** Wraps the effect that settles these requests. The effect that it returns must have the same result. */
  readonly settle: (
    requests: ReadonlyArray<SettleRequest>,
    settle: Effect.Effect<ReadonlyArray<SettleFailure>>
  ) => Effect.Effect<ReadonlyArray<SettleFailure>>
  /** Called when the consumer has stopped. */
  readonly close: () => void
}

/** Describes a consumer that starts. */
export interface About {
  /** The broker's name, for example `memory`. */
  readonly broker: string
  readonly queue: string
  /** The time of the consumer's clock, in milliseconds since the epoch, with fractions. */
  readonly now: () => number
  readonly health: () => ConsumerHealth
  readonly connection: Broker["connection"]
  /** The number of messages in the queue. */
  readonly counts: Effect.Effect<Counts, BrokerError>
}

/** The functions by which the core reports to a system of traces and metrics. */
export interface Service {
  /** Wraps each publish of a producer or a redrive. It may add headers to the messages. */
  readonly send: (
    broker: string,
    messages: ReadonlyArray<Outgoing>,
    publish: Broker["publish"]
  ) => Effect.Effect<void, BrokerError>
  /** Called when a consumer starts. */
  readonly consumer: (about: About) => Watch
}

/** The telemetry of producers, consumers and redrives, read when they are made. Default: `undefined`, for none. */
export const Telemetry: Context.Reference<Service | undefined> = Context.Reference<Service | undefined>(
  "@requeue/core/Telemetry",
  { defaultValue: () => undefined }
)

/** A handler run without telemetry. */
export const unwatched: Run = { within: (handler) => handler(), end: () => {} }

/**
 * Wraps the broker's publish in telemetry. `broker` is the broker's name. If `send` throws or does not return an
 * Effect, the messages are published without telemetry; the first such error is logged.
 */
export const publisher = (
  telemetry: Service | undefined,
  broker: string,
  publish: Broker["publish"]
): Broker["publish"] => {
  if (telemetry === undefined) return publish
  let isLogged = false
  const without = (messages: ReadonlyArray<Outgoing>, problem: string): Effect.Effect<void, BrokerError> => {
    if (isLogged) return publish(messages)
    isLogged = true
    const line = `telemetry.send ${problem}; messages are sent without it, further times are not logged`
    return Effect.andThen(Log.warning(line), () => publish(messages))
  }
  return (messages) => {
    try {
      const watched: unknown = telemetry.send(broker, messages, publish)
      return isPublish(watched) ? watched : without(messages, "did not return an Effect")
    } catch (error) {
      const { message, name } = summarize(error)
      return without(messages, `threw ${name}: ${message}`)
    }
  }
}

const isPublish = (u: unknown): u is Effect.Effect<void, BrokerError> => Effect.isEffect(u)
