/**
 * Consumers: a handler, the policies it runs under, and the queue it reads.
 *
 * Delivery is at least once. A handler may see a message again after a crash, a lost connection or a lost settlement,
 * so it must bear being run twice with the same `message.id`.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as BatchPolicy from "./BatchPolicy.ts"
import type { Broker } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import type { ConfigurationError } from "./ConfigurationError.ts"
import type * as ConsumerBackoff from "./ConsumerBackoff.ts"
import type { DeadLetterBudget, DeadLetterBudgetExhausted } from "./DeadLetterBudget.ts"
import type * as Delay from "./Delay.ts"
import type * as Event from "./Event.ts"
import type { Batch, BatchHandler, MessageHandler } from "./Handler.ts"
import * as Assembly from "./internal/assembly.ts"
import { dispatch } from "./internal/dispatch.ts"
import * as QueueDefinition from "./QueueDefinition.ts"
import type * as RetryPolicy from "./RetryPolicy.ts"

export interface Options {
  /** Default: 3 retries at once, then `<queue>.dlq`. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /** Delay of retries for which neither the handler, nor its error, nor the policy has one. Default 0. */
  readonly retryDelay?: Delay.Input | undefined
  /** Default: single messages for a message handler; 10 messages or 5 seconds for a batch handler. */
  readonly batch?: BatchPolicy.BatchPolicy | undefined
  /** Batches in progress at a time, 1 to 1,000. Default 1. */
  readonly concurrency?: number | undefined
  /** Longest run of a handler, 1 ms to 12 hours, or `"unlimited"`. Default 10 minutes. */
  readonly handlerTimeout?: Delay.Input | "unlimited" | undefined
  /** Default: off. */
  readonly consumerBackoff?: ConsumerBackoff.ConsumerBackoff | undefined
  /** Default: none. */
  readonly deadLetterBudget?: DeadLetterBudget | undefined
  /** How long handlers may go on after a shutdown began, before they are interrupted. Default 30 seconds. */
  readonly drainTimeout?: Delay.Input | undefined
  /** What the broker cannot honour: refuse to start (the default), or cut it down to what it can. */
  readonly onLimit?: "fail" | "clamp" | undefined
  /** Told of everything that happens to every message. */
  readonly onEvent?: Event.Hook | undefined
}

export interface Stats {
  /** Messages that wait for their batch. */
  readonly buffered: number
  /** Messages that a handler has, or that are being settled. */
  readonly inProgress: number
  /** Level of the consumer backoff; 0 when all is well. */
  readonly backoffLevel: number
  readonly state: "running" | "draining" | "stopped"
}

/** What a drain came to. */
export interface DrainReport {
  /** True when every handler ended in time. */
  readonly complete: boolean
  /** Messages whose handlers were interrupted; they are in the queue again. */
  readonly interrupted: number
  /** Milliseconds. */
  readonly elapsed: number
}

export interface Consumer {
  readonly queue: string
  readonly stats: () => Stats
  /**
   * Stops the intake, gives back what no handler has begun, waits for the handlers until the deadline, interrupts and
   * gives back the rest, and closes. Later calls wait for the first one.
   *
   * @param timeout default: the consumer's `drainTimeout`
   */
  readonly drain: (timeout?: Delay.Input) => Effect.Effect<DrainReport>
  /** Ends when the consumer has stopped; fails when it stopped itself. */
  readonly done: Effect.Effect<void, DeadLetterBudgetExhausted>
}

/** What keeps a consumer from starting. */
export type StartError = ConfigurationError | BrokerError

/**
 * Starts a consumer whose handler gets one message at a time; it drains when the scope closes.
 *
 * With a batch policy, the messages of a batch run side by side, and each is answered for alone.
 *
 * @throws RangeError when an option is out of its range
 *
 * @example
 * ```ts
 * import { Broker, Consumer, Producer, RetryPolicy } from "@requeue/core"
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const producer = yield* Producer.make("greetings")
 *   yield* producer.send({ hello: "world" })
 *   yield* Consumer.start("greetings", { retry: RetryPolicy.make({ maxRetries: 5 }) }, (message) =>
 *     Effect.log(message.body, message.attempts)
 *   )
 * }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
 *
 * await Effect.runPromise(program)
 * ```
 */
export const start = <A, R = never>(
  queue: QueueDefinition.Input<A>,
  options: Options,
  handler: MessageHandler<A, R>
): Effect.Effect<Consumer, StartError, Broker | Scope.Scope | R> =>
  launch(queue, options, { batch: options.batch ?? BatchPolicy.single, single: true }, (batch, context) =>
    handler(batch.messages[0]!, context)
  )

/**
 * Starts a consumer whose handler gets batches; it drains when the scope closes.
 *
 * @throws RangeError when an option is out of its range
 */
export const startBatch = <A, R = never>(
  queue: QueueDefinition.Input<A>,
  options: Options,
  handler: BatchHandler<A, R>
): Effect.Effect<Consumer, StartError, Broker | Scope.Scope | R> =>
  launch(queue, options, { batch: options.batch ?? BatchPolicy.make(), single: false }, handler)

const launch = <A, R>(
  queue: QueueDefinition.Input<A>,
  options: Options,
  mode: { readonly batch: BatchPolicy.BatchPolicy; readonly single: boolean },
  handler: BatchHandler<A, R>
): Effect.Effect<Consumer, StartError, Broker | Scope.Scope | R> =>
  Effect.gen(function* () {
    const concurrency = options.concurrency ?? 1
    if (!(Number.isSafeInteger(concurrency) && concurrency >= 1 && concurrency <= 1000)) {
      throw new RangeError(`Consumer.start: concurrency must be a whole number from 1 to 1000, got ${concurrency}`)
    }
    const assembled = yield* Assembly.make<R>({
      queue: QueueDefinition.from(queue),
      options,
      ...mode,
      // One further batch is filled while the others are in progress.
      ahead: 1,
      maxConcurrency: concurrency,
      runner: (environment) => (unit, done) =>
        dispatch(environment, (context) => handler(unit.view() as Batch<A>, context), done)
    })
    assembled.engine.setConcurrency(concurrency)
    return assembled.consumer
  })
