/**
 * AWS Lambda: a Requeue handler as the function of an SQS event source.
 *
 * The function applies the same policies as a consumer does: attempts from the message and SQS's count, retry delays
 * (visibility, set before the function responds), dead letters with their metadata, undecodable and permanent errors,
 * `maxAge`. The response names the messages that SQS must redeliver; the event source mapping deletes the others.
 *
 * - The mapping MUST have `ReportBatchItemFailures` among its `FunctionResponseTypes`. Without it, Lambda treats every
 *   response as success and deletes messages that have failed; no event shows whether the mapping has it. If you are not
 *   sure, set `reportBatchItemFailures: false`: the function then deletes the messages that are done, and the invocation
 *   fails unless all are done.
 * - FIFO queues: the handler has one message of each group at a time; a batch handler has all messages of a group, in
 *   order. When a message is redelivered, so are the later messages of its group: the response names the first message that
 *   failed, and all after it.
 * - The queue's visibility timeout must outlast the function; AWS asks for six times the function's timeout. A handler that
 *   still runs a second before the function's end is interrupted, and unfinished messages are redelivered at once.
 * - SQS also counts receives of messages that did not reach the handler, because the function ended or their group stopped.
 *   A function instance remembers such receives; another instance counts them as deliveries, of which the policy allows
 *   `maxDeliveries` on a standard queue. In the last second of the function, no handler starts.
 *
 * https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
 */
import { BatchPolicy, Consumer, type Handler, QueueDefinition } from "@requeue/core"
import { type ConfigurationError, ConsumerOptions, OptionNames } from "@requeue/core/port"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import type { SqsEvent } from "./internal/lambda/event.ts"
import * as Function from "./internal/lambda/function.ts"
import type { Lambda, LambdaContext, SqsBatchResponse } from "./internal/lambda/function.ts"
import { type BatchOptions, names, type Options } from "./internal/lambda/options.ts"

export type { SqsEvent, SqsMessageAttribute, SqsRecord } from "./internal/lambda/event.ts"
export { type Lambda, type LambdaContext, MessagesNotDone, type SqsBatchResponse } from "./internal/lambda/function.ts"
export type { BatchOptions, Options } from "./internal/lambda/options.ts"

const check = (where: string, handler: unknown): void => {
  if (typeof handler === "function") return
  throw new RangeError(`${where}: handler must be a function, after the options, got ${typeof handler}`)
}

/** The body of a queue without a codec, whose type the handler declares. */
type AnyBody = any // lets a handler without a declared type read the body without a cast

/** Provides a handler's Effect with the program's services, without the invocation's broker. */
const within =
  <R>(context: Context.Context<R>) =>
  (result: Handler.Result<R>): Handler.Result =>
    Effect.isEffect(result) ? Effect.provideContext(result, context) : result

/**
 * Makes a Lambda function whose handler gets one message at a time. The function works until the Effect's scope closes.
 *
 * When to use: in a program that runs its own Effects on Lambda; otherwise use `SqsLambda.handler`.
 *
 * @throws RangeError when an option is out of its range, or the handler is not a function
 */
export const make = <A = AnyBody, R = never>(
  queue: QueueDefinition.Input<A, never>,
  options: Options,
  handler: Handler.MessageHandler<A, R>
): Effect.Effect<Lambda, ConfigurationError.ConfigurationError, Scope.Scope | R> =>
  Effect.gen(function* () {
    OptionNames.check("SqsLambda.make", options, names)
    check("SqsLambda.make", handler)
    const run = within(yield* Effect.context<R>())
    const all = ConsumerOptions.over(queue, options, names)
    const bare = ConsumerOptions.bare(queue)
    return yield* Function.make(QueueDefinition.from(queue).name, all, (consumerOptions, begin) =>
      Consumer.start<A>(bare, consumerOptions, (message, context) => {
        begin(message)
        return run(handler(message, context))
      })
    )
  })

/**
 * Makes a function whose handler gets batches: all messages of an event, up to `maxBatchSize` at a time. It lives as
 * long as the scope.
 *
 * @throws RangeError when an option is out of its range, or the handler is not a function
 */
export const makeBatch = <A = AnyBody, R = never>(
  queue: QueueDefinition.Input<A, never>,
  { maxBatchSize = 100, ...options }: BatchOptions,
  handler: Handler.BatchHandler<A, R>
): Effect.Effect<Lambda, ConfigurationError.ConfigurationError, Scope.Scope | R> =>
  Effect.gen(function* () {
    OptionNames.check("SqsLambda.makeBatch", options, names)
    check("SqsLambda.makeBatch", handler)
    const run = within(yield* Effect.context<R>())
    const batch = BatchPolicy.make({ maxBatchSize, maxBatchTimeout: 0 })
    const all = ConsumerOptions.over(queue, options, names)
    const bare = ConsumerOptions.bare(queue)
    return yield* Function.make(QueueDefinition.from(queue).name, all, (consumerOptions, begin) =>
      Consumer.startBatch<A>(bare, { ...consumerOptions, batch }, (messages, context) => {
        messages.messages.forEach(begin)
        return run(handler(messages, context))
      })
    )
  })

/** A Lambda function that returns a promise, for programs without Effect. */
export type Handler = (event: SqsEvent, context: LambdaContext) => Promise<SqsBatchResponse>

/** Makes a function that lives as long as the process. */
const promised = (making: Effect.Effect<Lambda, ConfigurationError.ConfigurationError, Scope.Scope>): Handler => {
  const lambda = Effect.runSync(Scope.provide(making, Scope.makeUnsafe()))
  return (event, context) =>
    Effect.runPromise(Effect.provideService(lambda(event, context), References.MinimumLogLevel, "Warn"))
}

/**
 * Makes a Lambda function whose handler gets one message at a time. The handler returns a promise or an Effect.
 *
 * Rejects with `ConfigurationError` for an event that is not from the queue, with `BrokerError` when a queue is missing or
 * does not fit the policy, and with `MessagesNotDone` when `reportBatchItemFailures` is false and a message is not done.
 * Then SQS redelivers all messages of the event that are not deleted.
 *
 * @throws ConfigurationError when `sqs` or a policy cannot be used
 * @throws RangeError when an option is out of its range, or the handler is not a function
 *
 * @example
 * ```ts
 * import { SqsLambda } from "@requeue/adapter-sqs/lambda"
 * import { exponential } from "@requeue/core/promise"
 *
 * export const handler = SqsLambda.handler(
 *   "orders",
 *   {
 *     retry: { maxRetries: 5, backoff: exponential("10 seconds", { max: "1 hour", jitter: "full" }) },
 *     concurrency: 10,
 *     sqs: { url: "sqs://eu-west-1" }
 *   },
 *   async (message) => console.log(message.body, message.attempts)
 * )
 * ```
 */
export const handler = <A = AnyBody>(
  queue: QueueDefinition.Input<A, never>,
  options: Options,
  handle: Handler.MessageHandler<A>
): Handler => promised(make(queue, options, handle))

/**
 * Makes a Lambda function whose handler gets batches. The function throws and rejects as that of {@link handler} does.
 *
 * @example
 * ```ts
 * import { SqsLambda } from "@requeue/adapter-sqs/lambda"
 *
 * export const handler = SqsLambda.batchHandler("orders", { sqs: { url: "sqs://eu-west-1" } }, async (batch) => {
 *   for (const message of batch.messages) {
 *     if (message.body === "later") message.retry({ delay: "10 minutes" })
 *   }
 * })
 * ```
 */
export const batchHandler = <A = AnyBody>(
  queue: QueueDefinition.Input<A, never>,
  options: BatchOptions,
  handle: Handler.BatchHandler<A>
): Handler => promised(makeBatch(queue, options, handle))
