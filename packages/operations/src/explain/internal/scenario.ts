/** The scenario of a simulated outage, from a question and the options of a queue's consumers. */
import { ConsumerBackoff, Delay, type RateLimit, type RetryPolicy } from "@requeue/core"
import { ConsumerOptions } from "@requeue/core/port"

/** The outage to simulate. Times are in milliseconds. */
export interface Scenario {
  readonly retry: RetryPolicy.RetryPolicy
  /** The consumer's delay, for retries for which the policy has none. */
  readonly retryDelay: Delay.Delay
  readonly consumerBackoff: ConsumerBackoff.ConsumerBackoff
  /** How many handler runs may begin within a period. Default: any number. */
  readonly rateLimit?: RateLimit.RateLimit | undefined
  /** Messages a second, on average; they arrive independently of each other. */
  readonly rate: number
  /** The length of the outage, which begins with the simulation. */
  readonly outage: number
  /** The share of handler runs that fail during the outage, above 0 and up to 1. Default: 1. */
  readonly share?: number | undefined
  readonly handlerTime: number
  readonly concurrency: number
  readonly seed: number
}

/** The question that a simulated outage answers. Times are in milliseconds. */
export interface Question extends Pick<Scenario, "rate" | "outage" | "share" | "handlerTime" | "seed"> {
  /**
   * The number of handlers that run at a time. Default: the consumer's `concurrency`; without that option, twice as many as
   * the rate needs.
   */
  readonly concurrency?: number | undefined
  /** The form of the consumer's backoff, or `off`. Default: the form in the consumer's options. */
  readonly consumerBackoff?: ConsumerBackoff.ConsumerBackoff["form"] | "off" | undefined
}

/** Why an outage cannot be simulated: the field, and what to do. */
export interface Refusal {
  readonly field: "concurrency" | "rate"
  readonly detail: string
  readonly remedy: string
}

/** Returns the backoff to simulate: the consumer's own if it has the requested form. */
const backoffOf = (
  asked: Question["consumerBackoff"],
  own: ConsumerBackoff.ConsumerBackoff = ConsumerBackoff.off
): ConsumerBackoff.ConsumerBackoff => {
  if (asked === "off") return ConsumerBackoff.off
  return asked === undefined || (asked === own.form && own.maxBackoffDuration > 0)
    ? own
    : ConsumerBackoff.make({ form: asked })
}

/** The default for the largest number of messages in one simulated outage. */
export const maxMessages = 1_000_000

/**
 * Returns the scenario for a consumer with these options, or why it cannot be simulated: its handlers could not keep
 * up, or the outage has more messages than `most`.
 *
 * @example
 * ```ts
 * import { Outage } from "@requeue/operations"
 *
 * const question = { rate: 10, outage: 60_000, handlerTime: 100, seed: 1 }
 * const scenario = Outage.scenario({}, question)
 * "field" in scenario ? 0 : scenario.concurrency // => 2
 * ```
 */
export const scenario = (
  options: ConsumerOptions.Options,
  { concurrency: wanted, consumerBackoff, ...asked }: Question,
  most = maxMessages
): Scenario | Refusal => {
  const { handlerTime, outage, rate } = asked
  const needed = (rate * handlerTime) / 1000
  const concurrency = wanted ?? options.concurrency ?? Math.ceil(2 * needed)
  if (concurrency <= needed) {
    return {
      field: "concurrency",
      detail: `${concurrency} ${concurrency === 1 ? "handler" : "handlers"} of ${Delay.format(handlerTime)} cannot keep up with ${rate} messages a second`,
      remedy: `Set concurrency above ${needed}`
    }
  }
  const { rateLimit, retry, retryDelay = 0 } = ConsumerOptions.resolve(options)
  if (rateLimit !== undefined && (rateLimit.max * 1000) / rateLimit.per <= rate) {
    return {
      field: "rate",
      detail: `a rate limit of ${rateLimit.max} runs in ${Delay.format(rateLimit.per)} cannot keep up with ${rate} messages a second`,
      remedy: `Set rate below ${(rateLimit.max * 1000) / rateLimit.per}, or raise rateLimit`
    }
  }
  const messages = Math.round((rate * outage) / 1000)
  if (messages > most) {
    return {
      field: "rate",
      detail: `${messages} messages in one outage are too many to simulate`,
      remedy: "Simulate a lower rate, and multiply the result"
    }
  }
  return {
    ...asked,
    concurrency,
    retry,
    retryDelay,
    ...(rateLimit && { rateLimit }),
    consumerBackoff: backoffOf(consumerBackoff, options.consumerBackoff)
  }
}
