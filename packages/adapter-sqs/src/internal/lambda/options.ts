/** What a Lambda function can be told, its defaults, and the checks that it must pass when it is loaded. */
import { ConsumerOptions } from "@requeue/core"
import { ConfigurationError, Delay, type OptionNames, RetryPolicy } from "@requeue/core/adapter-kit"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as SqsOptions from "../../SqsOptions.ts"
import * as SqsPlan from "../../SqsPlan.ts"
import { capabilities } from "./invocation.ts"

/**
 * As of a consumer, but for what needs one that lives on: consumer backoff, a budget of dead letters. `concurrency` is
 * the number of messages (of a batch handler: batches) that are handled at a time; default 1.
 */
export interface Options extends Pick<
  ConsumerOptions.Options,
  "retryDelay" | "concurrency" | "handlerTimeout" | "onLimit" | "onEvent"
> {
  readonly retry?: RetryPolicy.Options | RetryPolicy.RetryPolicy | undefined
  /** Default: the function's region, its role, and `queues: "verify"`. */
  readonly sqs?: Partial<SqsOptions.Options> | undefined
  /**
   * Time before the end of the function after which no handler runs, 0 to 1 minute: for retry delays and dead letters.
   * Default 1 second.
   */
  readonly reserve?: Delay.Input | undefined
  /** Whether the event source mapping has it. Default true; see `SqsLambda`. */
  readonly reportBatchItemFailures?: boolean | undefined
}

export interface BatchOptions extends Options {
  /** 1 to 100. Default 100. */
  readonly maxBatchSize?: number | undefined
}

/** The names of the options, for checking. */
export const names: OptionNames.Of<Options> = {
  retry: true,
  retryDelay: true,
  concurrency: true,
  handlerTimeout: true,
  onLimit: true,
  onEvent: true,
  sqs: true,
  reserve: true,
  reportBatchItemFailures: true
}

const noRegion = () =>
  new ConfigurationError.ConfigurationError({
    broker: "sqs",
    field: "sqs.url",
    detail: "it is not given, and AWS_REGION is not set, as it is on Lambda",
    remedy: 'Set sqs: { url: "sqs://<region>" }'
  })

const settingsOf = (sqs: Partial<SqsOptions.Options> = {}) =>
  Effect.gen(function* () {
    const here = Effect.mapError(Config.NonEmptyString("AWS_REGION"), noRegion)
    const url = sqs.url ?? `sqs://${yield* here}`
    return yield* Effect.fromResult(SqsOptions.decode({ queues: "verify", ...sqs, url }))
  })

/**
 * The checked options, with their defaults.
 *
 * @throws RangeError when an option is out of its range
 */
export const decode = Effect.fnUntraced(function* (queue: string, options: Options) {
  const { onEvent, onLimit, reportBatchItemFailures = true, reserve = 1000, sqs } = options
  const settings = yield* settingsOf(sqs)
  const consumer: ConsumerOptions.Options = {
    retry: options.retry && RetryPolicy.from(options.retry),
    retryDelay: options.retryDelay,
    concurrency: options.concurrency,
    handlerTimeout: options.handlerTimeout,
    // A drain has what is left of the invocation.
    drainTimeout: 0,
    onLimit,
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
  return {
    settings,
    consumer,
    planned,
    /** As SQS knows the queue. */
    name: plan.queues.at(-1)!.name,
    reserve: Delay.constrain("SqsLambda: reserve", reserve, 0, 60_000),
    reportBatchItemFailures
  }
})
