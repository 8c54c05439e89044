/**
 * What a queue and its retry policy become on SQS, as data: queues and their attributes, before anything is done.
 *
 * Pure. The runtime creates exactly what stands here, compares it with what it finds, and `format` prints it, so that a
 * plan can be reviewed and tested without a broker. Requeue counts and dead-letters by itself, with the error in the
 * message; SQS's own redrive policy stands behind it as the backstop for messages that kill their consumer, with slack,
 * because SQS counts deliveries that no handler has seen as well.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
 */
import { ConfigurationError, Delay, RetryPolicy } from "@requeue/core/adapter-kit"
import * as Result from "effect/Result"
import * as Names from "./internal/names.ts"
import * as Backstop from "./internal/declare/maxReceiveCount.ts"
import { type Attributes, listed, type Plan, type Queue } from "./internal/declare/objects.ts"
import * as Stay from "./internal/declare/retention.ts"
import { type Finding, type Found, verify } from "./internal/declare/verify.ts"
import type { Settings } from "./SqsOptions.ts"

export { type Attributes, type Finding, type Found, type Plan, type Queue, verify }

export interface Request {
  readonly queue: string
  /** `undefined` for a producer, which knows no policy. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  readonly deadLetterQueues?: ReadonlyArray<string> | undefined
}

const refuse = (queue: string, field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ broker: "sqs", queue, field, detail, remedy })

const seconds = (millis: number): string => String(millis / 1000)

const encryption = ({ encryption: key }: Settings): Attributes =>
  key === "sqs" ? { SqsManagedSseEnabled: "true" } : key === "none" ? {} : { KmsMasterKeyId: key }

/** Deduplication and quota per message group: groups do not slow each other down. */
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

/** A queue without a limit of its own is given up by nobody but us, unless a copy cannot start its count again. */
const renews = (name: Names.Name, settings: Settings): boolean => !name.fifo || settings.fifoRetry === "resend"

/**
 * Plans a queue.
 *
 * Answers a `ConfigurationError` when a name is none that SQS takes, the types of queue and dead-letter queue differ, or
 * the policy lasts longer than the queue keeps a message or than SQS lets it be received.
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
  const names = Result.all([queue, ...deadLetterQueues].map(Names.parse))
  if (Result.isFailure(names)) {
    const { detail, queue: wrong = queue, remedy = "" } = names.failure
    return wrong === queue
      ? refuse(queue, "queue", detail, remedy)
      : refuse(queue, "retry.deadLetter", `${wrong}: ${detail}`, remedy)
  }
  const [name, ...letters] = names.success as [Names.Name, ...Array<Names.Name>]
  const backstop = letters[0]
  const maxAttempts = retry?.maxAttempts ?? 1
  const receives = Backstop.needed(maxAttempts, renews(name, settings))
  const maxReceiveCount = settings.maxReceiveCount ?? Backstop.planned(maxAttempts)
  const lasts = retry === undefined ? 0 : Stay.longest(retry)
  const conflict =
    mismatch(queue, name, deadLetterQueues, letters) ??
    (retry && !renews(name, settings) ? tooLate(queue, retry) : undefined) ??
    tooLong(queue, lasts, settings) ??
    (backstop && tooFew(queue, settings.maxReceiveCount, receives))
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
    const detail = `${deadLetterQueues[other]} is a ${kind(!fifo)} queue, ${queue} a ${kind(fifo)} one: SQS wants them alike`
    const remedy = fifo ? "End its name in .fifo" : "Give it a name without .fifo"
    return refuse(queue, "retry.deadLetter", detail, remedy)
  }
  const same = letters.findIndex((letter) => letter.name === name)
  if (same < 0) return undefined
  const detail = `${deadLetterQueues[same]} and ${queue} are both called ${name} on SQS`
  return refuse(queue, "retry.deadLetter", detail, "Give it another name")
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

/** A message can only stay in its place while it is hidden. */
const tooLate = (queue: string, retry: RetryPolicy.RetryPolicy): ConfigurationError.ConfigurationError | undefined => {
  const delay = Stay.longestDelay(retry)
  if (delay <= Stay.longestHide) return undefined
  const limit = Delay.format(Stay.longestHide)
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
  receives: number
): ConfigurationError.ConfigurationError | undefined =>
  given === undefined || given > receives
    ? undefined
    : refuse(queue, "maxReceiveCount", Backstop.tooFew(given, receives), "Raise it, or leave it out for one with slack")

const notes = (
  { name, redrive }: Queue,
  letters: ReadonlyArray<Names.Name>,
  retry: RetryPolicy.RetryPolicy,
  settings: Settings
): ReadonlyArray<string> => {
  const lines: Array<string> = []
  if (letters.length === 0)
    lines.push("no dead-letter queue: SQS has no backstop for a message that kills its consumer")
  else if (redrive === undefined) lines.push(`no backstop: SQS would give up after ${Backstop.highest} receives`)
  if (letters.length > 1) lines.push(`of the dead-letter queues, the backstop knows ${letters[0]!.name} only`)
  if (retry.maxAttempts > Backstop.renewAt && renews(name, settings)) {
    lines.push(`after ${Backstop.renewAt} receives a retry is a new copy, whose count starts again`)
  }
  if (retry.maxAttempts === Number.POSITIVE_INFINITY && retry.maxAge >= settings.retention) {
    lines.push(`SQS deletes a message that is ${Delay.format(settings.retention)} old: set retry.maxAge below that`)
  }
  if (name.fifo && settings.fifoRetry === "block") lines.push("a retried message holds up the others of its group")
  if (name.fifo && settings.fifoRetry === "resend") lines.push("a retried message goes behind the others of its group")
  return lines
}

/** By which SQS moves what kills every consumer. */
export const redrivePolicy = ({ redrive }: Queue, targetArn: string): string =>
  JSON.stringify({ deadLetterTargetArn: targetArn, maxReceiveCount: redrive?.maxReceiveCount })

/** Queues that one dead-letter queue can name. */
export const allowedSources = 10

/** The policy by which a dead-letter queue takes what SQS moves, from these queues and no other. */
export const redriveAllowPolicy = (sourceArns: ReadonlyArray<string>): string =>
  JSON.stringify({ redrivePermission: "byQueue", sourceQueueArns: sourceArns })

/** The plan as a table for people. */
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
