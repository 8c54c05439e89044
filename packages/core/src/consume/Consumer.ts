/**
 * Starts consumers. A consumer reads a queue, and calls a handler for its messages under your policies.
 *
 * Delivery is at least once: a crash, a lost connection or a lost settlement can redeliver a message. Handlers must be
 * idempotent by `message.id`.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as BatchPolicy from "../policy/BatchPolicy.ts"
import type { Broker } from "../port/Broker.ts"
import { handlerRefusal, kinds, type Options, over } from "./ConsumerOptions.ts"
import type { BatchHandler, MessageHandler } from "../message/Handler.ts"
import * as Dispatch from "./internal/runHandler.ts"
import * as Start from "./internal/start.ts"
import * as Limiter from "./internal/limiter.ts"
import type { Consumer, StartError } from "./internal/start.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as RateLimit from "../policy/RateLimit.ts"
import * as Timers from "../runtime/Timers.ts"
import * as QueueDefinition from "../message/QueueDefinition.ts"

export type { Options } from "./ConsumerOptions.ts"
export type { Consumer, StartError, Stats } from "./internal/start.ts"
export type { DrainReport } from "./internal/shutdown.ts"

/**
 * Starts a consumer whose handler gets one message at a time. When the scope closes, the consumer stops and waits for
 * running handlers.
 *
 * When to use: by default. With a batch policy, the handler runs concurrently for the messages of a batch, and each
 * message has a separate outcome.
 *
 * @throws RangeError when an option is out of range, or the handler is not a function
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
export const start = <
  A = any, // A queue that is given by name has unchecked bodies.
  R = never
>(
  queue: QueueDefinition.Input<A, never>,
  options: Options,
  handler: MessageHandler<A, R>
): Effect.Effect<Consumer, StartError, Broker | Scope.Scope | R> =>
  launch("Consumer.start", queue, options, { batch: BatchPolicy.single, single: true }, handler)

/**
 * Starts a consumer whose handler gets batches. When the scope closes, the consumer stops and waits for running
 * handlers.
 *
 * When to use: when one call can do the work of many messages, such as an insert of many rows.
 *
 * @throws RangeError when an option is out of range, or the handler is not a function
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { BatchPolicy, Consumer, Producer } from "@requeue/core"
 * import { Deferred, Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const sum = yield* Deferred.make<number>()
 *   const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: "1 second" })
 *   yield* Consumer.startBatch<number>("numbers", { batch }, ({ messages }) =>
 *     Deferred.succeed(sum, messages.reduce((total, { body }) => total + body, 0))
 *   )
 *   const producer = yield* Producer.make<number>("numbers")
 *   yield* producer.sendBatch([{ body: 1 }, { body: 2 }, { body: 3 }])
 *   return yield* Deferred.await(sum)
 * }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
 *
 * await Effect.runPromise(program) // => 6
 * ```
 */
export const startBatch = <
  A = any, // A queue that is given by name has unchecked bodies.
  R = never
>(
  queue: QueueDefinition.Input<A, never>,
  options: Options,
  handler: BatchHandler<A, R>
): Effect.Effect<Consumer, StartError, Broker | Scope.Scope | R> =>
  launch("Consumer.startBatch", queue, options, { batch: BatchPolicy.make(), single: false }, handler)

/** Whether the handler takes one message at a time, and the default of how messages are gathered. */
interface Mode {
  readonly batch: BatchPolicy.BatchPolicy
  readonly single: boolean
}

const launch = <A, R>(
  call: string,
  queue: QueueDefinition.Input<A, never>,
  options: Options,
  mode: Mode,
  handler: MessageHandler<A, R> | BatchHandler<A, R>
): Effect.Effect<Consumer, StartError, Broker | Scope.Scope | R> => {
  const refused = handlerRefusal(call, queue, options, handler) ?? OptionNames.refusal(call, options, kinds, queue)
  return OptionNames.orDie(refused, () => {
    const all = over(queue, options, kinds)
    return run(call, queue, all, { ...mode, batch: all.batch ?? mode.batch }, handler)
  })
}

const run = <A, R>(
  call: string,
  queue: QueueDefinition.Input<A, never>,
  options: Options,
  mode: Mode,
  handler: MessageHandler<A, R> | BatchHandler<A, R>
): Effect.Effect<Consumer, StartError, Broker | Scope.Scope | R> =>
  Effect.gen(function* () {
    const { concurrency = 1, shareLimits } = options
    const { prefetch = shareLimits === undefined ? mode.batch.maxBatchSize : 0 } = options
    const window = mode.batch.maxBatchSize * concurrency + prefetch
    const limiter = yield* limiterOf(options, {
      window,
      perRun: mode.single ? 1 : mode.batch.maxBatchSize,
      maxBatchTimeout: mode.batch.maxBatchTimeout
    })
    const { consumer, engine } = yield* Start.make<R>({
      queue: QueueDefinition.from(queue, call),
      options,
      ...mode,
      runs: "handler",
      concurrency,
      window: limiter?.window ?? window,
      limiter,
      runHandler: (dependencies) => {
        const run = Dispatch.runner(dependencies, handler, mode.single)
        return limiter === undefined ? run : limiter.counted(run)
      }
    })
    limiter?.open(engine.refresh)
    engine.refresh()
    return consumer
  })

/** Starts the rate limit of the options; `undefined` without one. */
const limiterOf = (
  { rateLimit }: Options,
  limits: Pick<Limiter.Dependencies, "window" | "perRun" | "maxBatchTimeout">
): Effect.Effect<Limiter.Limiter | undefined, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (rateLimit === undefined) return undefined
    return Limiter.make({ ...limits, limit: RateLimit.make(rateLimit), timers: yield* Timers.make })
  })
