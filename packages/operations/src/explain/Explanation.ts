/**
 * The configuration of a queue's consumers in plain sentences: what it sets, and what it leaves to defaults.
 *
 * When to use: to show a policy to people who did not write it. Nothing here decides anything.
 */
import { BatchPolicy, ConsumerBackoff, Delay, RateLimit, RetryPolicy, ShareLimits } from "@requeue/core"
import { type Capabilities, ConsumerOptions, Metadata } from "@requeue/core/port"
import * as Delays from "./internal/delays.ts"

/** The explanation of one part of a configuration. */
export interface Part {
  /** The part, such as `Retries`. */
  readonly about: string
  /** Whether the configuration leaves this part out, so its sentences describe defaults. */
  readonly isDefault: boolean
  /** The explanation: whole sentences, each with its full stop. */
  readonly sentences: ReadonlyArray<string>
}

const counted = (n: number, noun: string, plural = `${noun}s`): string => `${n} ${n === 1 ? noun : plural}`

const listed = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`

const isFinite = (n: number): boolean => n < Number.POSITIVE_INFINITY

const attempts = ({ immediate, maxAttempts, maxDeliveries }: RetryPolicy.RetryPolicy): ReadonlyArray<string> => [
  maxAttempts === 1
    ? "A message is tried once: its first failure is its last."
    : isFinite(maxAttempts)
      ? `A message that fails is retried up to ${counted(maxAttempts - 1, "time")}: ${maxAttempts} attempts in all.`
      : "A message that fails is retried for as long as it fails, without a limit of attempts.",
  ...(immediate > 0
    ? [
        `In each attempt its handler runs up to ${counted(immediate, "time")} more at once, before the attempt has failed.`
      ]
    : []),
  isFinite(maxDeliveries)
    ? `A message whose handler never comes to an end, because its process dies, is dead-lettered after ${counted(maxDeliveries, "delivery", "deliveries")}.`
    : "A message whose handler never comes to an end, because its process dies, is delivered again without limit."
]

const delays = ({ backoff, maxAge, maxAttempts }: RetryPolicy.RetryPolicy, retryDelay: number | undefined) => {
  if (maxAttempts === 1) return []
  const own =
    backoff === undefined
      ? [
          `A retry comes ${retryDelay === undefined || retryDelay === 0 ? "at once" : `after ${Delay.format(retryDelay)}`}.`
        ]
      : Delays.sentences(backoff, "A retry comes")
  const age = isFinite(maxAge)
    ? [`No retry comes later than ${Delay.format(maxAge)} after the first publish: then the message is dead-lettered.`]
    : []
  return [...own, "A delay that the handler or its error asks for comes first.", ...age]
}

const totals = (retry: RetryPolicy.RetryPolicy, retryDelay: number | undefined): ReadonlyArray<string> => {
  const { handlerRuns, worstCase } = RetryPolicy.describe(retry, retryDelay)
  if (!isFinite(handlerRuns)) return []
  const over =
    worstCase > 0 && isFinite(worstCase) ? ` over ${Delay.format(worstCase)}, without waiting in the queue` : ""
  return [`That is at most ${counted(handlerRuns, "handler run")}${over}.`]
}

const failures = ({ classify: { drop, permanent, uncounted, with: own } }: RetryPolicy.RetryPolicy) => {
  const lists: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
    [permanent, "dead-lettered at once, as permanent"],
    [drop, "dropped, and leave no dead letter"],
    [uncounted, "retried, and do not slow the consumer"]
  ]
  return [
    ...(own === undefined ? [] : ["A function of the program decides about each failure first."]),
    ...lists.flatMap(([names, fate]) => (names.length === 0 ? [] : [`Errors named ${listed(names)} are ${fate}.`])),
    "Every other failure is retried, unless its error says of itself that it is permanent."
  ]
}

const causes: { readonly [R in Metadata.Reason]: string } = {
  "retries-exhausted": "used up their retries",
  permanent: "failed for good",
  undecodable: "could not be decoded",
  "too-old": "became too old",
  "too-many-deliveries": "were delivered too often without an end"
}

const deadLetters = (queue: string, retry: RetryPolicy.RetryPolicy): ReadonlyArray<string> => {
  const byTarget = [...Map.groupBy(Metadata.reasons, (reason) => RetryPolicy.deadLetterQueue(retry, queue, reason))]
  return [
    ...byTarget.map(([target, found]) => {
      const who =
        found.length === Metadata.reasons.length
          ? "Messages that fail for good"
          : `Messages that ${found.map((reason) => causes[reason]).join(", or ")}`
      return target === undefined ? `${who} are discarded: no dead letter is kept.` : `${who} go to ${target}.`
    }),
    ...(retry.deadLetter.redact === undefined
      ? []
      : ["A function of the program rewrites their error before it travels with them."])
  ]
}

const budget = ({ deadLetterBudget }: ConsumerOptions.Options): string => {
  if (deadLetterBudget === undefined) return "A consumer makes any number of dead letters."
  const { max, perSuccess = 0.1 } = deadLetterBudget
  const earned = perSuccess > 0 ? `, and each success earns ${perSuccess} of one back` : ""
  return `A consumer stops itself after ${counted(max, "dead letter")}${earned}.`
}

const limited = ({ rateLimit }: ConsumerOptions.Options): ReadonlyArray<string> => {
  if (rateLimit === undefined) return []
  const { max, per } = RateLimit.make(rateLimit)
  const runs = max === 1 ? "1 handler run begins" : `${max} handler runs begin`
  return [`In any ${Delay.format(per)} at most ${runs} in each consumer; a batch is one run.`]
}

const shared = ({ shareLimits }: ConsumerOptions.Options): ReadonlyArray<string> => {
  if (shareLimits === undefined) return []
  const { concurrency, rateLimit } = ShareLimits.make(shareLimits)
  const limits = [
    ...(concurrency === undefined ? [] : [`at most ${counted(concurrency, "message is", "messages are")} in progress`]),
    ...(rateLimit === undefined
      ? []
      : [
          `at most ${counted(rateLimit.max, "message is", "messages are")} delivered in any ${Delay.format(rateLimit.per)}`
        ])
  ]
  return [`Of the messages with one fairBy, ${limits.join(", and ")}, over all consumers.`]
}

const batches = ({
  batch,
  concurrency = 1,
  prefetch,
  rateLimit,
  shareLimits
}: ConsumerOptions.Options): ReadonlyArray<string> => {
  const gathered = ({ maxBatchSize, maxBatchTimeout }: BatchPolicy.BatchPolicy) =>
    maxBatchSize === 1
      ? "gets one message at a time, as it arrives"
      : maxBatchTimeout === 0
        ? `gets up to ${maxBatchSize} messages at a time: those that have arrived`
        : `gets ${maxBatchSize} messages at a time, or those that have arrived ${Delay.format(maxBatchTimeout)} after the first`
  return [
    batch === undefined
      ? `A handler of messages ${gathered(BatchPolicy.single)}; one of batches ${gathered(BatchPolicy.make())}.`
      : `A handler ${gathered(batch)}.`,
    concurrency === 1
      ? "One handler runs at a time in each consumer."
      : `Up to ${concurrency} handlers run at a time in each consumer.`,
    prefetch === undefined && shareLimits === undefined
      ? "One batch waits in addition to those in progress."
      : prefetch === undefined || prefetch === 0
        ? "No message waits in addition to those in progress."
        : `Up to ${counted(prefetch, "message")} wait in addition to those in progress.`,
    ...limited({ rateLimit }),
    ...shared({ shareLimits })
  ]
}

const acknowledgement: Part = {
  about: "Acknowledgement",
  isDefault: true,
  sentences: [
    "A message is acknowledged when its handler ends well, and retried when it fails.",
    "Within a handler the first of ack, retry and fail decides about a message; ackAll and retryAll decide about those without a decision.",
    "A retry takes the delay that is given for its message, else that of retryAll, else the policy's."
  ]
}

const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`

/** The failures that begin a pause. */
const trigger = (policy: ConsumerBackoff.ConsumerBackoff): string => {
  switch (policy.form) {
    case "nsq":
      return "After a failed attempt"
    case "consecutive":
      return `After ${counted(policy.failures, "failed attempt")} in a row`
    case "ratio": {
      const { failureRatio, minAttempts, window } = policy
      const those =
        typeof window === "number"
          ? `the attempts of the last ${Delay.format(window)}`
          : `the last ${counted(window.attempts, "attempt")}`
      return `When ${percent(failureRatio)} of ${those} have failed, of at least ${minAttempts}`
    }
  }
}

const slowing = ({ consumerBackoff = ConsumerBackoff.off }: ConsumerOptions.Options): ReadonlyArray<string> => {
  const { maxBackoffDuration, multiplier, recovery, strategy } = consumerBackoff
  if (maxBackoffDuration === 0) return ["The consumer does not pause while its messages fail."]
  const pauses = [1, 2, 3].map((level) => Math.min(multiplier * 2 ** level, maxBackoffDuration)).map(Delay.format)
  return [
    `${trigger(consumerBackoff)}, the whole consumer pauses: for ${[...new Set(pauses)].join(", ")} and so on, ${Delay.format(maxBackoffDuration)} at most.`,
    ...(strategy === "full-jitter" ? ["Each pause is random between 0 and that."] : []),
    `After a pause it tries one message; when that succeeds, it ${recovery === "resume" ? "goes on at full speed" : "goes back one step"}.`
  ]
}

const limits = (options: ConsumerOptions.Options, lease: Capabilities.Lease | undefined): ReadonlyArray<string> => {
  const { drainTimeout, handlerTimeout, onLimit } = ConsumerOptions.resolve(options, lease)
  return [
    isFinite(handlerTimeout)
      ? `A handler run that takes longer than ${Delay.format(handlerTimeout)} is interrupted, and has failed.`
      : "A handler may run for as long as it likes.",
    drainTimeout === 0
      ? "A shutdown interrupts handlers at once."
      : `At a shutdown, handlers have ${Delay.format(drainTimeout)} to come to their end.`,
    onLimit === "fail"
      ? "A consumer does not start where the broker cannot keep a delay."
      : "A delay that the broker cannot keep is shortened to the longest that it can."
  ]
}

const isGiven = (...values: ReadonlyArray<unknown>): boolean => values.some((value) => value !== undefined)

/**
 * Explains the options of a queue's consumers. `lease` is how long the broker leaves an unsettled message to the consumer,
 * which limits a handler's time. Default: no lease.
 *
 * @throws RangeError when an option is unknown, of another kind or out of its range
 *
 * @example
 * ```ts
 * import { Explanation } from "@requeue/operations"
 *
 * const [retries] = Explanation.of("orders", {})
 * retries!.sentences[0] // => "A message that fails is retried up to 3 times: 4 attempts in all."
 * ```
 */
export const of = (
  queue: string,
  options: ConsumerOptions.Options,
  lease?: Capabilities.Lease
): ReadonlyArray<Part> => {
  const { retry, retryDelay } = ConsumerOptions.resolve(options, lease)
  const { batch, concurrency, consumerBackoff, deadLetterBudget, prefetch, rateLimit, shareLimits } = options
  const isOwn = isGiven(options.retry)
  const { drop, permanent, uncounted, with: own } = retry.classify
  return [
    {
      about: "Retries",
      isDefault: !isOwn && !isGiven(options.retryDelay),
      sentences: [...attempts(retry), ...delays(retry, retryDelay), ...totals(retry, retryDelay)]
    },
    {
      about: "Failures",
      isDefault: own === undefined && [drop, permanent, uncounted].every(({ length }) => length === 0),
      sentences: failures(retry)
    },
    {
      about: "Dead letters",
      isDefault: !isOwn && !isGiven(deadLetterBudget),
      sentences: [...deadLetters(queue, retry), budget(options)]
    },
    acknowledgement,
    {
      about: "Batches",
      isDefault: !isGiven(batch, concurrency, prefetch, rateLimit, shareLimits),
      sentences: batches(options)
    },
    { about: "Consumer backoff", isDefault: !isGiven(consumerBackoff), sentences: slowing(options) },
    {
      about: "Limits",
      isDefault: !isGiven(options.handlerTimeout, options.drainTimeout, options.onLimit),
      sentences: limits(options, lease)
    }
  ]
}
