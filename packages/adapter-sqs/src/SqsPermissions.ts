/**
 * The minimal IAM policy of a role for a plan, as JSON.
 *
 * Pure. A batch call needs the permission of its single call.
 *
 * https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html
 */
import type { Plan, Queue } from "./SqsPlan.ts"

/**
 * The roles of programs and operators:
 *
 * - `consumer`: reads the queue, retries, dead-letters. A Lambda function's execution role is one.
 * - `producer`: sends.
 * - `operator`: counts, browses, purges and redrives, including SQS's move tasks.
 */
export type Role = "consumer" | "producer" | "operator"

/** Region and account of the queues, for their ARNs. */
export interface Place {
  readonly region: string
  readonly account: string
  /** `aws-cn` in China, `aws-us-gov` in GovCloud. Default: `aws`. */
  readonly partition?: string | undefined
  /** The ARN of the KMS key that encrypts the queues. Default: none, because SQS manages the key. */
  readonly key?: string | undefined
}

/**
 * A statement of an IAM policy.
 *
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_statement.html
 */
export interface Statement {
  readonly Sid: string
  readonly Effect: "Allow"
  readonly Action: ReadonlyArray<string>
  readonly Resource: ReadonlyArray<string>
}

/** An IAM policy. */
export interface Policy {
  readonly Version: "2012-10-17"
  readonly Statement: ReadonlyArray<Statement>
}

/** Returns a queue's ARN. The account and region in its name take precedence. */
export const arn = ({ name }: Queue, { account, partition = "aws", region }: Place): string =>
  `arn:${partition}:sqs:${name.region ?? region}:${name.account ?? account}:${name.name}`

const all = ["ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "SendMessage"]

const work: { readonly [R in Role]: ReadonlyArray<string> } = {
  consumer: all,
  producer: ["SendMessage"],
  operator: all
}

const letters: { readonly [R in Role]: ReadonlyArray<string> } = {
  consumer: ["SendMessage"],
  producer: [],
  operator: [
    ...all,
    "ListDeadLetterSourceQueues",
    "StartMessageMoveTask",
    "ListMessageMoveTasks",
    "CancelMessageMoveTask"
  ]
}

/**
 * Returns the call with which a consumer checks whether SQS moves messages to its queue. Such messages arrive with a
 * receive count.
 */
const asks = ({ mode }: Plan, role: Role): ReadonlyArray<string> =>
  role === "consumer" && mode !== "use" ? ["ListDeadLetterSourceQueues"] : []

const setUp = ({ mode, tags }: Plan): ReadonlyArray<string> => [
  "GetQueueUrl",
  "GetQueueAttributes",
  ...(mode === "create" ? ["CreateQueue", "SetQueueAttributes"] : []),
  ...(mode === "create" && Object.keys(tags).length > 0 ? ["TagQueue"] : [])
]

/**
 * Returns the policy of a role.
 *
 * @example
 * ```ts
 * import { SqsOptions, SqsPermissions, SqsPlan } from "@requeue/adapter-sqs"
 * import { RetryPolicy } from "@requeue/core"
 * import { Result } from "effect"
 *
 * const settings = Result.getOrThrow(SqsOptions.decode({ url: "sqs://eu-west-1", queues: "verify" }))
 * const plan = SqsPlan.make({ queue: "orders", retry: RetryPolicy.make(), deadLetterQueues: ["orders.dlq"] }, settings)
 * if (!("queues" in plan)) throw plan
 * const place = { region: "eu-west-1", account: "123456789012" }
 * console.log(JSON.stringify(SqsPermissions.make(plan, "consumer", place), undefined, 2))
 * ```
 */
export const make = (plan: Plan, role: Role, place: Place): Policy => {
  const of = (wanted: Queue["role"]) =>
    plan.queues.filter((queue) => queue.role === wanted).map((queue) => arn(queue, place))
  const statements: ReadonlyArray<
    readonly [Sid: string, service: string, ReadonlyArray<string>, ReadonlyArray<string>]
  > = [
    ["Work", "sqs", [...work[role], ...setUp(plan), ...asks(plan, role)], of("work")],
    ["DeadLetters", "sqs", letters[role].length === 0 ? [] : [...letters[role], ...setUp(plan)], of("dead letters")],
    // Senders need both actions too:
    // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
    ["Key", "kms", ["Decrypt", "GenerateDataKey"], place.key === undefined ? [] : [place.key]]
  ]
  return {
    Version: "2012-10-17",
    Statement: statements.flatMap(([Sid, service, actions, Resource]) =>
      actions.length === 0 || Resource.length === 0
        ? []
        : [{ Sid, Effect: "Allow", Action: actions.map((action) => `${service}:${action}`), Resource }]
    )
  }
}
