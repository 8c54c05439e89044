/**
 * Plans: the SQS queues and attributes that a queue and its retry policy need, as data.
 *
 * Pure: a plan can be reviewed and tested without a broker. The adapter creates the queues of the plan, and compares
 * existing queues with it; `format` prints it. Requeue itself counts attempts and dead-letters messages, with the error
 * in the message. SQS's redrive policy is the backstop for messages that kill every consumer. It allows more receives
 * than the policy, because SQS also counts deliveries that reached no handler.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
 */
import { ConfigurationError, Delay, RetryPolicy } from "@requeue/core/port"
import * as Result from "effect/Result"
import * as MaxReceiveCount from "./internal/declare/maxReceiveCount.ts"
import { type Attributes, listed, type Plan, type Queue } from "./internal/declare/objects.ts"
import { inOtherRegion } from "./internal/declare/region.ts"
import * as Retention from "./internal/declare/retention.ts"
import { type Finding, type Found, verify } from "./internal/declare/verify.ts"
import * as Limits from "./internal/limits.ts"
import * as Names from "./internal/names.ts"
import type { Settings } from "./SqsOptions.ts"

export { type Attributes, type Finding, type Found, type Plan, type Queue, verify }

/** The queues of a consumer or producer, by their names in the program. */
export interface Request {
  readonly queue: string
  /** The retry policy of a consumer. Default: none, as for a producer. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /** All dead-letter queues of the policy; `RetryPolicy.deadLetterQueues` returns them. Default: none. */
  readonly deadLetterQueues?: ReadonlyArray<string> | undefined
}

const refuse = (queue: string, field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ broker: "sqs", queue, field, detail, remedy })

const seconds = (millis: number): string => String(millis / 1000)

/** Returns the encryption attributes. SQS encrypts new queues by default. */
const encryption = ({ encryption: key }: Settings): Attributes =>
  key === "sqs" || key === "none" ? { SqsManagedSseEnabled: String(key === "sqs") } : { KmsMasterKeyId: key }

/**
 * Attributes that give each message group its own deduplication and throughput quota, so groups do not slow each other
 * down.
 */
const highThroughput: Attributes = {
  FifoQueue: "true",
  ContentBasedDeduplication: "false",
  DeduplicationScope: "messageGroup",
  FifoThroughputLimit: "perMessageGroupId"
}

const attributesOf = (name: Names.Name, role: Queue["role"], settings: Settings): Attributes => ({
  VisibilityTimeout: seconds(settings.visibilityTimeout),
  MessageRetentionPeriod: seconds(role === "work" ? settings.retention : settings.deadLetterRetention),
  ReceiveMessageWaitTimeSeconds: seconds(settings.waitTime),
  ...encryption(settings),
  ...(name.fifo ? highThroughput : {})
})

/**
 * Whether a retry can be a new copy, whose receives SQS counts from 0. Otherwise the policy must not need more receives
 * than SQS allows.
 */
const renews = (name: Names.Name, settings: Settings): boolean => !name.fifo || settings.fifoRetry === "resend"

/**
 * Plans the queues of a consumer or producer.
 *
 * Returns a `ConfigurationError` if SQS does not accept a name, if only one of queue and dead-letter queue is FIFO, or
 * if the policy needs more time than the queue's retention, or more receives than SQS allows.
 *
 * @example
 * ```ts
 * import { SqsOptions, SqsPlan } from "@requeue/adapter-sqs"
 * import { RetryPolicy } from "@requeue/core"
 * import { Result } from "effect"
 *
 * const settings = Result.getOrThrow(SqsOptions.decode({ url: "sqs://eu-west-1" }))
 * const retry = RetryPolicy.make({ maxRetries: 5 })
 * const plan = SqsPlan.make({ queue: "orders", retry, deadLetterQueues: ["orders.dlq"] }, settings)
 * if ("queues" in plan) console.log(SqsPlan.format(plan))
 * ```
 */
export const make = (
  { deadLetterQueues = [], queue, retry }: Request,
  settings: Settings
): Plan | ConfigurationError.ConfigurationError => {
  const parsed = Names.parse(queue)
  if (Result.isFailure(parsed)) return refuse(queue, "queue", parsed.failure.detail, parsed.failure.remedy ?? "")
  const parsedLetters = Result.all(deadLetterQueues.map(Names.parse))
  if (Result.isFailure(parsedLetters)) {
    const { detail, queue: wrong, remedy = "" } = parsedLetters.failure
    return refuse(queue, "retry.deadLetter", `${wrong}: ${detail}`, remedy)
  }
  // A name without an account belongs to the connection's account.
  const owned = (name: Names.Name): Names.Name => ({ ...name, account: name.account ?? settings.address.account })
  const name = owned(parsed.success)
  const letters = parsedLetters.success.map(owned)
  // SQS does not move messages to a queue of another account.
  const [backstop] = letters.filter((letter, index) => index === 0 && letter.account === name.account)
  const maxDeliveries = retry?.maxDeliveries ?? 1
  const receives = MaxReceiveCount.needed(maxDeliveries, renews(name, settings))
  const maxReceiveCount = settings.maxReceiveCount ?? MaxReceiveCount.planned(maxDeliveries)
  const lasts = retry === undefined ? 0 : Retention.longest(retry)
  const conflict =
    [queue, ...deadLetterQueues]
      .map((each, index) => inOtherRegion(each, [name, ...letters][index]!, queue, settings))
      .find((found) => found !== undefined) ??
    mismatch(queue, name, deadLetterQueues, letters) ??
    (retry && !renews(name, settings) ? tooLate(queue, retry) : undefined) ??
    tooLong(queue, lasts, settings) ??
    (backstop && tooFew(queue, settings.maxReceiveCount, receives, name.fifo))
  if (conflict !== undefined) return conflict
  const work: Queue = {
    queue,
    name,
    role: "work",
    attributes: attributesOf(name, "work", settings),
    redrive: backstop && maxReceiveCount > receives ? { to: backstop, maxReceiveCount } : undefined,
    redriveFrom: undefined
  }
  return {
    queue,
    mode: settings.queues,
    queues: [
      ...letters.map(
        (letter, index): Queue => ({
          queue: deadLetterQueues[index]!,
          name: letter,
          role: "dead letters",
          attributes: attributesOf(letter, "dead letters", settings),
          redrive: undefined,
          redriveFrom: index === 0 && work.redrive !== undefined ? name : undefined
        })
      ),
      work
    ],
    tags: settings.tags,
    receives,
    lasts,
    notes: retry === undefined ? [] : notes(work, letters, retry, settings)
  }
}

const mismatch = (
  queue: string,
  { fifo, name }: Names.Name,
  deadLetterQueues: ReadonlyArray<string>,
  letters: ReadonlyArray<Names.Name>
): ConfigurationError.ConfigurationError | undefined => {
  const other = letters.findIndex((letter) => letter.fifo !== fifo)
  if (other >= 0) {
    const kind = (isFifo: boolean) => (isFifo ? "FIFO" : "standard")
    const detail = `${deadLetterQueues[other]} is a ${kind(!fifo)} queue, ${queue} a ${kind(fifo)} one: SQS requires both to be of the same kind`
    const remedy = fifo
      ? "End the dead-letter queue's name in .fifo"
      : "Give the dead-letter queue a name without .fifo"
    return refuse(queue, "retry.deadLetter", detail, remedy)
  }
  const same = letters.findIndex((letter) => letter.name === name)
  if (same < 0) return undefined
  const detail = `${deadLetterQueues[same]} and ${queue} are both called ${name} on SQS`
  return refuse(queue, "retry.deadLetter", detail, "Give the dead-letter queue another name")
}

const tooLong = (
  queue: string,
  lasts: number,
  { retention }: Settings
): ConfigurationError.ConfigurationError | undefined =>
  lasts < retention
    ? undefined
    : refuse(
        queue,
        "retention",
        `a message is retried for ${Delay.format(lasts)}, SQS deletes it after ${Delay.format(retention)}`,
        "Raise retention (14 days at most), or set retry.maxAge below it"
      )

/**
 * Returns the error of a retry that is too late: a message keeps its position in a FIFO queue only while it is hidden.
 */
const tooLate = (queue: string, retry: RetryPolicy.RetryPolicy): ConfigurationError.ConfigurationError | undefined => {
  const delay = Retention.longestDelay(retry)
  if (delay <= Limits.hide) return undefined
  const limit = Delay.format(Limits.hide)
  return refuse(
    queue,
    "retry.backoff",
    `a retry waits for ${Delay.format(delay)}, a message can hold its place in a FIFO queue for ${limit}`,
    `Use shorter delays, or fifoRetry: "resend"`
  )
}

const tooFew = (
  queue: string,
  given: number | undefined,
  receives: number,
  fifo: boolean
): ConfigurationError.ConfigurationError | undefined =>
  given === undefined || given > receives
    ? undefined
    : refuse(
        queue,
        "maxReceiveCount",
        MaxReceiveCount.tooFew(given, receives),
        `Raise it, or leave it out for one with slack${MaxReceiveCount.lower(given, fifo)}`
      )

const notes = (
  { name, name: { account }, redrive }: Queue,
  letters: ReadonlyArray<Names.Name>,
  retry: RetryPolicy.RetryPolicy,
  settings: Settings
): ReadonlyArray<string> => {
  const lines: Array<string> = []
  if (letters.length === 0)
    lines.push("no dead-letter queue: SQS has no backstop for a message that kills its consumer")
  else if (letters[0]!.account !== account)
    lines.push("no backstop: by their names, the queue and its dead letters are of different accounts")
  else if (redrive === undefined) lines.push(`no backstop: SQS would give up after ${Limits.maxReceiveCount} receives`)
  if (letters.length > 1) lines.push(`of the dead-letter queues, the backstop knows ${letters[0]!.name} only`)
  if (retry.maxDeliveries > MaxReceiveCount.renewAt && renews(name, settings)) {
    lines.push(`after ${MaxReceiveCount.renewAt} receives a retry is a new copy, whose count starts again`)
  }
  if (retry.maxAttempts === Number.POSITIVE_INFINITY && retry.maxAge >= settings.retention) {
    lines.push(`SQS deletes a message that is ${Delay.format(settings.retention)} old: set retry.maxAge below that`)
  }
  if (name.fifo && settings.fifoRetry === "block") lines.push("a retried message holds up the others of its group")
  if (name.fifo && settings.fifoRetry === "resend") lines.push("a retried message moves after the others of its group")
  return lines
}

/** Returns the value of `RedrivePolicy`. With it, SQS moves messages that kill every consumer. */
export const redrivePolicy = ({ redrive }: Queue, targetArn: string): string =>
  JSON.stringify({ deadLetterTargetArn: targetArn, maxReceiveCount: redrive?.maxReceiveCount })

/** Maximum number of queues in a `RedriveAllowPolicy`. */
export const allowedSources = 10

/**
 * Returns the value of `RedriveAllowPolicy`. With it, a dead-letter queue accepts messages that SQS moves only from these
 * queues.
 */
export const redriveAllowPolicy = (sourceArns: ReadonlyArray<string>): string =>
  JSON.stringify({ redrivePermission: "byQueue", sourceQueueArns: sourceArns })

/** Formats the plan as a table. */
export const format = ({ mode, notes: lines, queue, queues }: Plan): string => {
  const rows = queues.flatMap((one) => [
    [one.role, one.name.name, ""],
    ...listed(one).map(([attribute, value]) => ["", attribute, value])
  ])
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]!.length)))
  const table = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()
  )
  return [`queue ${queue}, queues: ${mode}`, ...table, ...lines.map((line) => `note: ${line}`)].join("\n")
}
