/**
 * Tools for operators: create and verify a consumer's queues, and let SQS move dead letters back.
 *
 * These tools never delete anything. To count, browse, redrive with filters and purge on any broker, see `DeadLetters` of
 * `@requeue/operations`.
 */
import { BrokerError, ConfigurationError, Delay, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { textIn, textListIn, textsIn } from "./internal/answer.ts"
import { type Client, connect } from "./internal/lazyClient.ts"
import * as Queues from "./internal/declare/declare.ts"
import { toBrokerError } from "./internal/toBrokerError.ts"
import { decode, type Options, type Settings } from "./SqsOptions.ts"
import * as SqsPlan from "./SqsPlan.ts"

/** A queue and the policy of its consumer. */
export interface Request {
  readonly queue: string
  /** The retry policy. Default: 3 retries without a delay, then the dead-letter queue `<queue>.dlq`. */
  readonly retry?: RetryPolicy.Options | RetryPolicy.RetryPolicy | undefined
  /**
   * The timeout of a Lambda function that reads the queue. The queue's visibility timeout must not be shorter. Default: 0,
   * because a consumer extends the visibility timeout itself.
   */
  readonly functionTimeout?: Delay.DurationInput | undefined
}

interface Opened {
  readonly client: Client
  readonly settings: Settings
  readonly queues: Queues.Queues
}

const open = (options: Options): Effect.Effect<Opened, ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(decode(options))
    const client = yield* connect(settings)
    return { client, settings, queues: Queues.make(client, settings) }
  })

const toPlanRequest = ({ queue, retry = {} }: Request): Required<SqsPlan.Request> => {
  const policy = RetryPolicy.from(retry)
  return { queue, retry: policy, deadLetterQueues: RetryPolicy.deadLetterQueues(policy, queue) }
}

const leaseOf = ({ functionTimeout = 0 }: Request): number => Delay.toMillis(functionTimeout)

/**
 * Compares each attribute of a consumer's queues with its policy. Changes nothing.
 *
 * When to use: in a deployment, before the consumer starts: the consumer would refuse to start with the same findings.
 *
 * @throws RangeError when the policy is out of its range
 *
 * @example
 * ```ts
 * import { SqsOperator } from "@requeue/adapter-sqs"
 * import * as Effect from "effect/Effect"
 *
 * const findings = SqsOperator.verify(
 *   { queue: "orders", retry: { maxRetries: 5 }, functionTimeout: "1 minute" },
 *   { url: "sqs://eu-west-1" }
 * )
 * const wrong = Effect.map(findings, (all) => all.filter(({ isGood }) => !isGood))
 * ```
 */
export const verify = (
  request: Request,
  options: Options
): Effect.Effect<ReadonlyArray<SqsPlan.Finding>, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { queues, settings } = yield* open(options)
      const planned = yield* ConfigurationError.orFail(SqsPlan.make(toPlanRequest(request), settings))
      const plan = yield* queues.adapted(planned)
      return SqsPlan.verify(plan, yield* queues.inspect(plan), leaseOf(request))
    })
  )

/**
 * Creates the missing queues of a consumer, and sets the planned redrive policy on a queue without one. It changes nothing
 * else, and fails if existing queues do not fit the policy.
 *
 * When to use: if consumers and producers run with `queues: "verify"` or `"use"`, without permission to create.
 *
 * @throws RangeError when the policy is out of its range
 *
 * @example
 * ```ts
 * import { SqsOperator } from "@requeue/adapter-sqs"
 *
 * const created = SqsOperator.create({ queue: "orders", retry: { maxRetries: 5 } }, { url: "sqs://eu-west-1" })
 * ```
 */
export const create = (
  request: Request,
  options: Options
): Effect.Effect<void, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { queues } = yield* open({ ...options, queues: "create" })
      yield* queues.ensure(toPlanRequest(request), leaseOf(request))
    })
  )

/** The options of {@link startMove}: where SQS moves dead letters, and how fast. */
export interface MoveOptions {
  /**
   * The queue that the messages are moved to. Default: the only queue whose redrive policy names the dead-letter queue.
   */
  readonly to?: string | undefined
  /** Messages per second, a whole number from 1 to 500. Default: chosen by SQS. */
  readonly rate?: number | undefined
}

/** A task of SQS that moves dead letters. Its numbers are approximate. */
export interface Move {
  readonly status: "RUNNING" | "COMPLETED" | "CANCELLING" | "CANCELLED" | "FAILED"
  readonly moved: number
  /** Number of messages to move when the task began. */
  readonly total: number | undefined
  /** Why the task has failed; `undefined` if it has not failed. */
  readonly failure: string | undefined
}

const arnOf = ({ client, queues }: Opened, queue: string): Effect.Effect<string, BrokerError.BrokerError> =>
  Effect.flatMap(queues.see(queue), ({ url }) =>
    ask("find", queue, async () => {
      const answer = await client.getQueueAttributes({ QueueUrl: url, AttributeNames: ["QueueArn"] })
      return textIn(textsIn(answer, "Attributes"), "QueueArn")
    })
  )

/**
 * Returns the only source of a dead-letter queue. SQS does not know the source of messages that were sent there, such
 * as all dead letters of Requeue: without a destination, its task would fail at the first one.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/troubleshooting-dlq-redrive.html
 */
const onlySource = ({ client, queues }: Opened, queue: string): Effect.Effect<string, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { url } = yield* queues.see(queue)
    const answer = yield* ask("move", queue, () => client.listDeadLetterSourceQueues({ QueueUrl: url }))
    const queueUrls = textListIn(answer, "queueUrls")
    const [source, ...others] = queueUrls
    if (source !== undefined && others.length === 0) return source
    const names = queueUrls.map((one) => one.slice(one.lastIndexOf("/") + 1)).toSorted()
    return yield* new BrokerError.BrokerError({
      broker: "sqs",
      operation: "move",
      queue,
      reason: "Unsupported",
      detail:
        source === undefined
          ? "no queue's redrive policy names it: SQS does not move its messages"
          : `it is the dead-letter queue of ${names.join(", ")}, and SQS does not know the source of Requeue's dead letters`,
      remedy: `Use DeadLetters.redrive${source === undefined ? "" : ', which sends each letter back to its queue. To move all letters to one queue, pass { to: "NAME" }'}`
    })
  })

const ask = <A>(operation: string, queue: string, run: () => Promise<A>): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.tryPromise({ try: run, catch: (cause) => toBrokerError(cause, { operation, queue }) })

/**
 * Starts a task of SQS that moves all messages of a dead-letter queue back, in the background.
 *
 * When to use: to move back a very large number of dead letters, all of them. Otherwise use `DeadLetters.redrive`: it
 * filters, has a dry run, guards against loops and reports its results. SQS's task:
 *
 * - requires that the queue is the dead-letter queue of another one, allows one task per queue at a time, and moves up to
 *   500 messages per second, all to one queue;
 * - gives the messages new ids, ages and receive counts, but keeps Requeue's metadata. A message that
 *   Requeue had dead-lettered starts again at attempt 1, and the metadata of its next copy counts the move as a redrive. A
 *   message that SQS itself had dead-lettered continues with the number of attempts in its metadata.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
 *
 * @throws RangeError when the rate is out of its range
 *
 * @example
 * ```ts
 * import { SqsOperator } from "@requeue/adapter-sqs"
 *
 * const started = SqsOperator.startMove("orders.dlq", { url: "sqs://eu-west-1" }, { rate: 100 })
 * ```
 */
export const startMove = (
  deadLetterQueue: string,
  options: Options,
  { rate, to }: MoveOptions = {}
): Effect.Effect<void, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      if (rate !== undefined && !(Number.isSafeInteger(rate) && rate >= 1 && rate <= 500)) {
        throw new RangeError(`SqsOperator.startMove: rate must be a whole number from 1 to 500, got ${rate}`)
      }
      const opened = yield* open(options)
      const SourceArn = yield* arnOf(opened, deadLetterQueue)
      const DestinationArn = yield* arnOf(opened, to ?? (yield* onlySource(opened, deadLetterQueue)))
      const limit = rate === undefined ? {} : { MaxNumberOfMessagesPerSecond: rate }
      yield* ask("move", deadLetterQueue, () =>
        opened.client.startMessageMoveTask({ SourceArn, DestinationArn, ...limit })
      )
    })
  )

const tasks = (opened: Opened, queue: string) =>
  Effect.flatMap(arnOf(opened, queue), (SourceArn) =>
    Effect.map(
      ask("moves", queue, () => opened.client.listMessageMoveTasks({ SourceArn, MaxResults: 10 })),
      ({ Results = [] }) => Results
    )
  )

/** Returns the move tasks of a dead-letter queue, latest first, at most ten. */
export const moves = (
  deadLetterQueue: string,
  options: Options
): Effect.Effect<ReadonlyArray<Move>, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const opened = yield* open(options)
      return (yield* tasks(opened, deadLetterQueue)).map((task) => ({
        status: task.Status as Move["status"], // all documented values
        moved: task.ApproximateNumberOfMessagesMoved ?? 0,
        total: task.ApproximateNumberOfMessagesToMove,
        failure: task.FailureReason
      }))
    })
  )

/**
 * Stops the running move task of a dead-letter queue, and returns the approximate number of moved messages. It returns 0 if
 * no task is running. Moved messages are not moved back.
 */
export const cancelMove = (
  deadLetterQueue: string,
  options: Options
): Effect.Effect<number, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const opened = yield* open(options)
      const [latest] = yield* tasks(opened, deadLetterQueue)
      if (latest?.TaskHandle === undefined) return 0
      const { TaskHandle } = latest
      const { ApproximateNumberOfMessagesMoved: moved = 0 } = yield* ask("cancel", deadLetterQueue, () =>
        opened.client.cancelMessageMoveTask({ TaskHandle })
      )
      return moved
    })
  )
