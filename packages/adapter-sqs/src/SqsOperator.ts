/**
 * Tools of an operator: create and verify a consumer's queues, and have SQS itself move dead letters back.
 *
 * They never remove anything. Counting, browsing, redriving with filters and purging are the same on every broker: see
 * `DeadLetters` of `@requeue/operations`.
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

/** A queue, and the policy of its consumer. Creating and verifying need no more. */
export interface Request {
  readonly queue: string
  /** The retry policy. Default: 3 retries at once, then `<queue>.dlq`. */
  readonly retry?: RetryPolicy.Options | RetryPolicy.RetryPolicy | undefined
  /**
   * The time-out of a Lambda function that reads the queue. The queue's visibility timeout must not be shorter.
   * Default: 0, for consumers, which extend their leases.
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
 * Compares a consumer's queues with what its policy needs, attribute by attribute, and changes nothing.
 *
 * When to use: in a deployment, before the consumer starts; it would refuse to start with the same findings.
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
 * Creates those of a consumer's queues that are missing, and gives a queue without a redrive policy the planned one.
 * Changes nothing else, and fails when queues that exist do not fit the policy.
 *
 * When to use: where consumers and producers run with `queues: "verify"` or `"use"`, without the permission to create.
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

/** How SQS moves dead letters. */
export interface MoveOptions {
  /** The queue that the messages are moved to. Default: the only queue whose redrive policy names the dead-letter queue. */
  readonly to?: string | undefined
  /** Messages per second, a whole number from 1 to 500. Default: chosen by SQS. */
  readonly rate?: number | undefined
}

/** A move task of SQS. Numbers are approximate. */
export interface Move {
  readonly status: "RUNNING" | "COMPLETED" | "CANCELLING" | "CANCELLED" | "FAILED"
  readonly moved: number
  /** Messages that there were to move when the task began. */
  readonly total: number | undefined
  /** Why the task has failed; `undefined` where it has not. */
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
 * The only source of a dead-letter queue. SQS itself knows the source of none of the messages that were sent there, as all
 * dead letters of Requeue are, and its task would fail at the first of them.
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
          ? "no queue's redrive policy names it, so that SQS moves none of its messages"
          : `it is the dead-letter queue of ${names.join(", ")}, and SQS cannot tell where a dead letter of Requeue comes from`,
      remedy: `Use DeadLetters.redrive${source === undefined ? "" : ", which takes each letter back to its queue; or move all of them to one queue by the option to"}`
    })
  })

const ask = <A>(operation: string, queue: string, run: () => Promise<A>): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.tryPromise({ try: run, catch: (cause) => toBrokerError(cause, { operation, queue }) })

/**
 * Has SQS move all messages of a dead-letter queue back to work, in the background.
 *
 * When to use: for very many dead letters that are all wanted back; else `DeadLetters.redrive`, which filters, has a
 * dry run, guards against loops and tells what it did. SQS itself:
 *
 * - takes only a queue that is the dead-letter queue of another one, one task per queue at a time, and moves up to 500
 *   messages a second, all of them to one queue;
 * - gives the messages new ids and ages and counts their receives anew, but does not touch what Requeue wrote into
 *   them. A dead letter of Requeue starts at attempt 1 again, and its next copy counts the redrive. A message that SQS
 *   itself had moved there keeps the attempts of its earlier copies, and has that many fewer left.
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

/** The move tasks of a dead-letter queue, the latest first, ten at most. */
export const moves = (
  deadLetterQueue: string,
  options: Options
): Effect.Effect<ReadonlyArray<Move>, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const opened = yield* open(options)
      return (yield* tasks(opened, deadLetterQueue)).map((task) => ({
        status: task.Status as Move["status"], // SQS documents no other
        moved: task.ApproximateNumberOfMessagesMoved ?? 0,
        total: task.ApproximateNumberOfMessagesToMove,
        failure: task.FailureReason
      }))
    })
  )

/**
 * Stops the running move task of a dead-letter queue. Returns the approximate number of messages that it has moved, 0 if no
 * task is running. Moved messages are not moved back.
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
