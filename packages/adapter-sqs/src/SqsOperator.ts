/**
 * What an operator does beside running consumers: make and check a consumer's queues, and have SQS itself move dead
 * letters back.
 *
 * Nothing is ever removed. Counting, looking, redriving with filters and purging are the same on every broker: see
 * `DeadLetters` of `@requeue/core`.
 */
import { type BrokerError, ConfigurationError, Delay, RetryPolicy } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Client, connect } from "./internal/client.ts"
import * as Queues from "./internal/declare/declare.ts"
import { toBrokerError } from "./internal/toBrokerError.ts"
import { decode, type Options, type Settings } from "./SqsOptions.ts"
import * as SqsPlan from "./SqsPlan.ts"

/** A queue, and the policy of its consumer. */
export interface Request {
  readonly queue: string
  /** Default: 3 retries at once, then `<queue>.dlq`. */
  readonly retry?: RetryPolicy.Options | RetryPolicy.RetryPolicy | undefined
  /** The time-out of a Lambda function that reads the queue: its messages' visibility must outlast it. */
  readonly functionTimeout?: Delay.Input | undefined
}

interface Tools {
  readonly client: Client
  readonly settings: Settings
  readonly queues: Queues.Queues
}

const open = (options: Options): Effect.Effect<Tools, ConfigurationError.ConfigurationError, Scope.Scope> =>
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
      const plan = SqsPlan.make(toPlanRequest(request), settings)
      if (plan instanceof ConfigurationError.ConfigurationError) return yield* plan
      return SqsPlan.verify(plan, yield* queues.inspect(plan), leaseOf(request))
    })
  )

/**
 * Creates those of a consumer's queues that are missing, and connects a queue with its dead-letter queue where it has
 * none; fails when what is there does not fit the policy. What exists is not changed otherwise.
 *
 * When to use: where consumers and producers run with `queues: "verify"` or `"use"`, without the permission to create.
 *
 * @throws RangeError when the policy is out of its range
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

export interface MoveOptions {
  /** Where to. Default: each message's source, as SQS knows it. */
  readonly to?: string | undefined
  /** Messages per second, 1 to 500. Default: as fast as SQS thinks fit. */
  readonly rate?: number | undefined
}

/** A move task of SQS. */
export interface Move {
  readonly status: "RUNNING" | "COMPLETED" | "CANCELLING" | "CANCELLED" | "FAILED"
  readonly moved: number
  /** How many there were to move when it began, about. */
  readonly total: number | undefined
  readonly failure: string | undefined
}

const arnOf = ({ client, queues }: Tools, queue: string): Effect.Effect<string, BrokerError.BrokerError> =>
  Effect.flatMap(queues.see(queue), ({ url }) =>
    Effect.map(
      ask("find", queue, () => client.getQueueAttributes({ QueueUrl: url, AttributeNames: ["QueueArn"] })),
      ({ Attributes }) => Attributes!.QueueArn!
    )
  )

const ask = <A>(operation: string, queue: string, run: () => Promise<A>): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.tryPromise({ try: run, catch: (cause) => toBrokerError(cause, { operation, queue }) })

/**
 * Has SQS move all messages of a dead-letter queue back to work, in the background.
 *
 * When to use: for very many dead letters that are all wanted back; else `DeadLetters.redrive`, which filters, tries
 * out, guards against loops and tells what it did. SQS itself:
 *
 * - takes only a queue that is the dead-letter queue of another one, one task per queue at a time, and moves up to 500
 *   messages a second;
 * - gives the messages new ids and ages and counts their receives anew, but does not touch what Requeue wrote into them.
 *   A dead letter of Requeue starts at attempt 1 again, and is taken for redriven: its next copy counts the redrive. A
 *   message that SQS itself had moved there keeps the attempts of its earlier copies, and has that many fewer left.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
 *
 * @throws RangeError when the rate is out of its range
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
      const tools = yield* open(options)
      const SourceArn = yield* arnOf(tools, deadLetterQueue)
      const target = to === undefined ? {} : { DestinationArn: yield* arnOf(tools, to) }
      const limit = rate === undefined ? {} : { MaxNumberOfMessagesPerSecond: rate }
      yield* ask("move", deadLetterQueue, () => tools.client.startMessageMoveTask({ SourceArn, ...target, ...limit }))
    })
  )

/** The move tasks of a dead-letter queue, the latest first, ten at most. */
export const moves = (
  deadLetterQueue: string,
  options: Options
): Effect.Effect<ReadonlyArray<Move>, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const tools = yield* open(options)
      const SourceArn = yield* arnOf(tools, deadLetterQueue)
      const { Results = [] } = yield* ask("moves", deadLetterQueue, () =>
        tools.client.listMessageMoveTasks({ SourceArn, MaxResults: 10 })
      )
      return Results.map((task) => ({
        status: task.Status as Move["status"],
        moved: task.ApproximateNumberOfMessagesMoved ?? 0,
        total: task.ApproximateNumberOfMessagesToMove,
        failure: task.FailureReason
      }))
    })
  )
