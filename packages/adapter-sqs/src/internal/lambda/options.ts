/** The options of a Lambda function, their defaults, and their checks when the function is loaded. */
import {
  ConfigurationError,
  ConsumerOptions,
  Delay,
  OptionKind,
  type OptionNames,
  RetryPolicy
} from "@requeue/core/port"
import type { Requeue } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as SqsOptions from "../../SqsOptions.ts"
import * as SqsPlan from "../../SqsPlan.ts"
import * as Limits from "../limits.ts"
import { capabilities } from "./invocation.ts"

/** The options of the broker of a function. */
export interface LambdaSqs extends SqsOptions.OtherOptions {
  /** Region and account, as in `SqsOptions`. Default: the function's region. */
  readonly url?: SqsOptions.Options["url"] | undefined
}

/** The consumer options that apply to one invocation, without consumer backoff and the dead-letter budget. */
// Listed one by one, because editors do not show the docs of members from `Pick`.
export interface Options {
  /** The retry policy. Default: 3 retries at once, then `<queue>.dlq`. */
  readonly retry?: RetryPolicy.Options | undefined
  /** Delay of retries if neither handler, error nor policy sets one, 0 to 24 hours. Default: 0. */
  readonly retryDelay?: ConsumerOptions.Options["retryDelay"]
  /** Number of messages, or batches for a batch handler, that are handled concurrently, 1 to 1,000. Default: 1. */
  readonly concurrency?: ConsumerOptions.Options["concurrency"]
  /** Longest run of a handler, 1 ms to 12 hours, or `"unlimited"`. Default: as in a consumer. */
  readonly handlerTimeout?: ConsumerOptions.Options["handlerTimeout"]
  /** How to treat delays that SQS cannot honour: `"fail"`, or `"clamp"` to shorten them. Default: `"fail"`. */
  readonly onLimit?: ConsumerOptions.Options["onLimit"]
  /** Whether failures keep their stack traces. Default: true. */
  readonly stackTraces?: ConsumerOptions.Options["stackTraces"]
  /** Called with everything that happens to every message. Default: nothing is called. */
  readonly onEvent?: ConsumerOptions.Options["onEvent"]
  /**
   * The connection whose `store` and `storeNamespace` apply to `message.within`, such as that by which the handler sends. In an Effect
   * program, its `run` is `Effect.runPromiseWith(context)`. Default: handlers cannot use `within`.
   */
  readonly connection?: Pick<Requeue, "run"> | undefined
  /** The options of the broker. Default: the function's region, its role, and `queues: "verify"`. */
  readonly sqs?: LambdaSqs | undefined
  /**
   * Time reserved at the end of the function to settle messages, from 0 to 1 minute. Handlers that still run then are
   * interrupted. Default: 1 second.
   */
  readonly reserve?: Delay.DurationInput | undefined
  /** Whether the event source mapping has `ReportBatchItemFailures`. Default: true. See the top of `SqsLambda`. */
  readonly reportBatchItemFailures?: boolean | undefined
}

/** The options of a function whose handler gets batches. */
export interface BatchOptions extends Options {
  /** Messages of the largest batch, 1 to 100. Default: 100. */
  readonly maxBatchSize?: number | undefined
}

/** The names of the options, for checking. */
export const names: OptionNames.Of<Options> = {
  retry: true,
  retryDelay: true,
  concurrency: true,
  handlerTimeout: true,
  onLimit: true,
  stackTraces: true,
  onEvent: true,
  connection: OptionKind.object("a connection with a store", "run"),
  sqs: true,
  reserve: true,
  reportBatchItemFailures: true
}

const noRegion = () =>
  new ConfigurationError.ConfigurationError({
    broker: "sqs",
    field: "sqs.url",
    detail: "no URL is given, and AWS_REGION is not set",
    remedy: 'Set sqs: { url: "sqs://<region>" }'
  })

const settingsOf = (sqs: LambdaSqs = {}) =>
  Effect.gen(function* () {
    const { AWS_REGION: here = "" } = process.env
    if (sqs.url === undefined && here === "") return yield* noRegion()
    return yield* Effect.fromResult(SqsOptions.decode({ queues: "verify", ...sqs, url: sqs.url ?? `sqs://${here}` }))
  })

/**
 * The checked options, with their defaults.
 *
 * @throws RangeError when an option is out of its range
 */
export const decode = Effect.fnUntraced(function* (queue: string, options: Options) {
  const { onEvent, onLimit, reportBatchItemFailures = true, reserve = 1000, sqs, stackTraces } = options
  const settings = yield* settingsOf(sqs)
  const consumer: ConsumerOptions.Options = {
    retry: options.retry === undefined ? undefined : RetryPolicy.from(options.retry),
    retryDelay: options.retryDelay,
    concurrency: options.concurrency,
    handlerTimeout: options.handlerTimeout,
    // Draining may take the rest of the invocation.
    drainTimeout: 0,
    onLimit,
    stackTraces,
    onEvent
  }
  const resolved = ConsumerOptions.resolve(consumer)
  yield* ConsumerOptions.verify(resolved, capabilities(settings), queue)
  const planned = {
    queue,
    retry: resolved.retry,
    deadLetterQueues: RetryPolicy.deadLetterQueues(resolved.retry, queue)
  }
  const plan = SqsPlan.make(planned, settings)
  if (plan instanceof ConfigurationError.ConfigurationError) return yield* plan
  const { name } = plan.queues.at(-1)!
  return {
    settings,
    // Messages that wait for others of their group must not block the other groups of the event.
    consumer: name.fifo ? { ...consumer, prefetch: Limits.batch } : consumer,
    planned,
    /** The queue's name on SQS. */
    name,
    reserve: Delay.constrain("SqsLambda: reserve", reserve, 0, 60_000),
    reportBatchItemFailures
  }
})
