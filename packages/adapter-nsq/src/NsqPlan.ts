/**
 * The topics and channels of a queue on NSQ, as data, with notes about its delays.
 *
 * When to use: to see which topics and channels a consumer would create.
 */
import { Backoff, ConfigurationError, Delay, type RetryPolicy } from "@requeue/core/port"
import * as Names from "./internal/names.ts"
import type { Settings } from "./NsqOptions.ts"

/** A queue on NSQ: one channel of a topic. */
export type Queue = Names.Queue

/** The options that a plan depends on. */
type Choices = Pick<Settings, "channel" | "retry" | "envelope" | "create" | "http">

/** The queue that is planned. */
export interface Request {
  /** The queue's name: `topic`, or `topic/channel`. */
  readonly queue: string
  /** The retry policy, whose delays the plan checks. Default: retries without a delay. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /** The names of the dead-letter queues. Default: none. */
  readonly deadLetterQueues?: ReadonlyArray<string> | undefined
}

/** The topics and channels of a queue. */
export interface Plan {
  /**
   * The queue that producers publish to. Retries never go there, because every other channel of its topic would get them.
   */
  readonly source: Queue
  /** The queue where copies of failed messages wait for their retry. */
  readonly retry: Queue
  readonly deadLetters: ReadonlyArray<Queue>
  /** Human-readable notes: how nsqd keeps the policy's delays, and the drawbacks of the options. */
  readonly notes: ReadonlyArray<string>
}

const retriesOf = ({ retry }: Request, settings: Pick<Settings, "retry">, cap: number): string => {
  const longest = retry?.backoff === undefined ? 0 : Backoff.longest(retry.backoff)
  if (settings.retry === "exact") return "retries are copies: their delays survive a restart of nsqd"
  const native = `retries are requeued by nsqd, up to ${Delay.format(cap)}`
  return longest <= cap ? native : `${native}; longer delays are deferred copies, one after the other`
}

const notesOf = (request: Request, settings: Choices, cap: number): ReadonlyArray<string> => [
  retriesOf(request, settings, cap),
  ...(settings.envelope === "never" ? ["with envelope: never, bodies are sent without id and headers"] : []),
  ...(settings.http && settings.create
    ? []
    : ["topics and channels are created on first use: until then, deferred messages wait longer"])
]

/**
 * Parses the name of a dead-letter queue. The queue must not be in the source topic, because every channel of that topic
 * would receive the dead letters.
 */
const toDeadLetters = (name: string, { topic }: Queue, { channel }: Choices): Queue | Names.Refused => {
  const parsed = Names.parse(name, channel)
  if (Names.isRefused(parsed) || parsed.topic !== topic) return parsed
  return {
    detail: `${JSON.stringify(name)} is in the topic ${topic} of the queue, and every channel of that topic would get the dead letters`,
    remedy: "Name a dead-letter queue in another topic, or leave deadLetter out"
  }
}

/**
 * Returns the plan of a queue, or an error when nsqd would refuse a name. Pure. `cap` is the longest delay that nsqd
 * keeps, in milliseconds.
 *
 * @example
 * ```ts
 * import { NsqOptions, NsqPlan } from "@requeue/adapter-nsq"
 * import * as Result from "effect/Result"
 *
 * const settings = Result.getOrThrow(NsqOptions.decode())
 * const plan = NsqPlan.make({ queue: "orders/billing" }, settings, 3_600_000)
 * "retry" in plan ? plan.retry.topic : plan.detail // => "orders.billing.retry"
 * ```
 */
export const make = (
  request: Request,
  settings: Choices,
  cap: number
): Plan | ConfigurationError.ConfigurationError => {
  const source = Names.parse(request.queue, settings.channel)
  if (Names.isRefused(source)) {
    return new ConfigurationError.ConfigurationError({ field: "queue", broker: "nsq", queue: request.queue, ...source })
  }
  const deadLetters: Array<Queue> = []
  for (const name of request.deadLetterQueues ?? []) {
    const parsed = toDeadLetters(name, source, settings)
    if (Names.isRefused(parsed)) {
      return new ConfigurationError.ConfigurationError({
        field: "retry.deadLetter",
        broker: "nsq",
        queue: request.queue,
        ...parsed
      })
    }
    deadLetters.push(parsed)
  }
  return { source, retry: Names.retry(source), deadLetters, notes: notesOf(request, settings, cap) }
}

const line = (role: string, { channel, topic }: Queue): string => `${role}: topic ${topic}, channel ${channel}`

/** Formats the plan as text: one line for each queue and each note. */
export const format = ({ deadLetters, notes, retry, source }: Plan): string =>
  [
    line("messages", source),
    line("retries", retry),
    ...deadLetters.map((queue) => line("dead letters", queue)),
    ...notes
  ].join("\n")
