/**
 * The one seam for tracing and metrics: what is called around a send, around a run of a handler, around a settlement.
 *
 * Without telemetry, which is the default, nothing of this exists for a message but one comparison with `undefined`.
 *
 * When to use: to connect another system of traces and metrics. For OpenTelemetry there is `@requeue/opentelemetry`.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Producer, Telemetry } from "@requeue/core"
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
import type * as Effect from "effect/Effect"
import type { Counts, Service as Broker, SettleFailure, SettleRequest } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import type { Delivery } from "../message/Delivery.ts"
import type { Hook } from "./Event.ts"
import type { ConsumerHealth } from "./Health.ts"
import type { ErrorSummary } from "../message/Metadata.ts"
import type { Outgoing } from "../message/Outgoing.ts"

/** How a run of a handler ended; the error is redacted as the policy says. */
export type Ending =
  | { readonly _tag: "Succeeded" }
  | { readonly _tag: "Failed"; readonly error: ErrorSummary }
  | { readonly _tag: "Interrupted" }

/** One run of a handler. */
export interface Run {
  /**
   * Calls the handler so that what it does belongs to this run; of an Effect that the handler answers, it answers one
   * that belongs to it.
   */
  readonly within: <A>(handler: () => A) => A
  /** Called once, before anything is settled that the outcome decides. */
  readonly end: (ending: Ending) => void
}

/** A consumer that is watched. None of its functions may throw. */
export interface Watch {
  /** Told of everything that happens to every message, before the consumer's own `onEvent`. */
  readonly onEvent: Hook
  /** A handler is about to run for these; `rerun` is 0 unless the same delivery was run before. */
  readonly run: (deliveries: ReadonlyArray<Delivery>, rerun: number) => Run
  /** Around a call of the broker: answers an effect that answers the same. */
  readonly settle: (
    requests: ReadonlyArray<SettleRequest>,
    settle: Effect.Effect<ReadonlyArray<SettleFailure>>
  ) => Effect.Effect<ReadonlyArray<SettleFailure>>
  /** The consumer has stopped. */
  readonly close: () => void
}

/** What is known of a consumer when it starts. */
export interface About {
  /** The broker's name, for example `memory`. */
  readonly broker: string
  readonly queue: string
  /** Milliseconds since the epoch, with their fractions, by the consumer's clock. */
  readonly now: () => number
  readonly health: () => ConsumerHealth
  readonly connection: Broker["connection"]
  /** What waits in the queue. */
  readonly counts: Effect.Effect<Counts, BrokerError>
}

export interface Service {
  /** Around a publish by a producer or a redrive; `messages` may be handed on with more headers. */
  readonly send: (
    broker: string,
    messages: ReadonlyArray<Outgoing>,
    publish: Broker["publish"]
  ) => Effect.Effect<void, BrokerError>
  readonly consumer: (about: About) => Watch
}

/** What producers, consumers and redrives are watched by, as they are made; `undefined`, the default, for nothing. */
export const Telemetry: Context.Reference<Service | undefined> = Context.Reference<Service | undefined>(
  "@requeue/core/Telemetry",
  { defaultValue: () => undefined }
)

/** A run that nobody watches. */
export const unwatched: Run = { within: (handler) => handler(), end: () => {} }

/** The same publish, watched. */
export const publisher = (
  telemetry: Service | undefined,
  broker: string,
  publish: Broker["publish"]
): Broker["publish"] => (telemetry === undefined ? publish : (messages) => telemetry.send(broker, messages, publish))
