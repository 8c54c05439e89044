/**
 * The topics and channels of a queue on NSQ, as data, and how its delays are kept.
 *
 * When to use: to see the topics and channels that a consumer would make, before it does.
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
  /** `topic`, or `topic/channel`. */
  readonly queue: string
  /** The policy whose delays are to be kept. Default: retries without a delay. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /** The names of the dead-letter queues. Default: none. */
  readonly deadLetterQueues?: ReadonlyArray<string> | undefined
}

/** The topics and channels of a queue. */
export interface Plan {
  /** The queue that producers publish to. Retries never go there: every other channel would get them. */
  readonly source: Queue
  /** The queue of the copies that wait for their retry. */
  readonly retry: Queue
  readonly deadLetters: ReadonlyArray<Queue>
  /** How nsqd keeps the delays of the policy, and the disadvantages of the options, for people. */
  readonly notes: ReadonlyArray<string>
}

const retriesOf = ({ retry }: Request, settings: Pick<Settings, "retry">, cap: number): string => {
  const longest = retry?.backoff === undefined ? 0 : Backoff.longest(retry.backoff)
  if (settings.retry === "exact") return "retries are copies, so that their delays survive a restart of nsqd"
  const native = `retries are requeued by nsqd, up to ${Delay.format(cap)}`
  return longest <= cap ? native : `${native}; longer delays are deferred copies, one after the other`
}

const notesOf = (request: Request, settings: Choices, cap: number): ReadonlyArray<string> => [
  retriesOf(request, settings, cap),
  ...(settings.envelope === "never" ? ["what is sent is a bare body: its id and headers are lost"] : []),
  ...(settings.http && settings.create
    ? []
    : ["topics and channels come into being when they are first used: until then, what is deferred waits longer"])
]

/** A queue of dead letters. What is published to a topic goes to all of its channels, that of the queue itself included. */
const toDeadLetters = (name: string, { topic }: Queue, { channel }: Choices): Queue | Names.Refused => {
  const parsed = Names.parse(name, channel)
  if (Names.isRefused(parsed) || parsed.topic !== topic) return parsed
  return {
    detail: `${JSON.stringify(name)} is a channel of ${topic} itself, all of whose channels would get the dead letters`,
    remedy: "Name another topic, or none for a dead-letter topic of the queue's own"
  }
}

/**
 * The plan of a queue, or the error of a name that nsqd would refuse. Pure. `cap` is the longest delay that nsqd keeps by
 * itself, in milliseconds.
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

/** The plan for people: a line for each queue and each note. */
export const format = ({ deadLetters, notes, retry, source }: Plan): string =>
  [
    line("messages", source),
    line("retries", retry),
    ...deadLetters.map((queue) => line("dead letters", queue)),
    ...notes
  ].join("\n")
