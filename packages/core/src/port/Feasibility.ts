/** Feasibility: whether a broker can do what a consumer or a message requires. It is checked before a start or a publish. */
import * as Backoff from "../policy/Backoff.ts"
import { BrokerError } from "./BrokerError.ts"
import type { Capabilities, DelayReach, Optional } from "./Capabilities.ts"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import * as Delay from "../message/Delay.ts"
import type { Outgoing } from "../message/Outgoing.ts"
import { deadLetterQueues, type RetryPolicy } from "../policy/RetryPolicy.ts"
import type { ShareLimits } from "../policy/ShareLimits.ts"

/** How a broker meets a requirement. `Clamped`: a delay of `from` milliseconds is shortened to `to` milliseconds. */
export type Support =
  | { readonly _tag: "Exact" }
  | { readonly _tag: "Emulated"; readonly how: string }
  | { readonly _tag: "Clamped"; readonly from: number; readonly to: number }
  | { readonly _tag: "Impossible"; readonly why: string; readonly remedy: string }

/** The result for one requirement. */
export interface Finding {
  /** The option or policy field that has the requirement, for example `retry.backoff`. */
  readonly field: string
  readonly support: Support
}

/** The options of a consumer that its broker must support. */
export interface Requirements {
  readonly retry: RetryPolicy
  /** The consumer's `retryDelay`, in milliseconds. Default: none. */
  readonly retryDelay?: Delay.Delay | undefined
  /** The consumer's `handlerTimeout`, in milliseconds. Default: none. */
  readonly handlerTimeout?: number | undefined
  /** The consumer's `shareLimits`. Default: none. */
  readonly shareLimits?: ShareLimits | undefined
  /** Whether to refuse a delay that the broker cannot keep, or to shorten it to the longest possible. */
  readonly onLimit: "fail" | "clamp"
}

/** A {@link Support} as a word and its details. */
export interface Told {
  readonly support: "exact" | "emulated" | "clamped" | "impossible"
  readonly detail: string
}

/** Describes a support in words. */
export const describe = (support: Support): Told => {
  switch (support._tag) {
    case "Exact":
      return { support: "exact", detail: "" }
    case "Emulated":
      return { support: "emulated", detail: support.how }
    case "Clamped":
      return { support: "clamped", detail: `from ${Delay.format(support.from)} to ${Delay.format(support.to)}` }
    case "Impossible":
      return { support: "impossible", detail: `${support.why}. ${support.remedy}` }
  }
}

type Impossible = Extract<Support, { _tag: "Impossible" }>

const Exact: Support = { _tag: "Exact" }

/** Returns how the broker rounds the delays; `undefined` if it keeps each of them. */
const rounding = (delays: ReadonlyArray<Delay.Delay>, step = 1): string | undefined => {
  if (delays.every((each) => each % step === 0)) return undefined
  return `rounded up to ${step === 1000 ? "whole seconds" : `multiples of ${Delay.format(step)}`}`
}

/** `delays` are all that the policy has, or its shortest and longest ones. */
const delay = (
  delays: ReadonlyArray<Delay.Delay>,
  { beyond, native, step }: DelayReach,
  onLimit: Requirements["onLimit"]
): Support => {
  const [wanted, rounded] = [Math.max(0, ...delays), rounding(delays, step)]
  if (wanted <= native) return rounded === undefined ? Exact : { _tag: "Emulated", how: rounded }
  if (beyond !== undefined) return { _tag: "Emulated", how: rounded === undefined ? beyond : `${beyond}; ${rounded}` }
  if (onLimit === "clamp") return { _tag: "Clamped", from: wanted, to: native }
  return {
    _tag: "Impossible",
    why: `the policy needs delays of up to ${Delay.format(wanted)}, the broker keeps at most ${Delay.format(native)}`,
    remedy: `Set max to ${Delay.format(native)} or less, or onLimit: "clamp"`
  }
}

const lease = (timeout: number, { lease }: Capabilities): Support => {
  if (lease === undefined || timeout <= lease.duration) return Exact
  if (timeout < lease.max || lease.max === Number.POSITIVE_INFINITY)
    return { _tag: "Emulated", how: "the lease is extended while the handler runs" }
  return {
    _tag: "Impossible",
    why: `a handler may run for ${Delay.format(timeout)}, the broker's lease ends after ${Delay.format(lease.max)}`,
    remedy: `Set handlerTimeout below ${Delay.format(lease.max)}`
  }
}

/** The problem of a broker without a capability, and the brokers with it. */
const absences: { readonly [C in Optional]: readonly [string, string] } = {
  keyedOrder: [
    "the broker does not keep the order of messages with a key",
    "SQLite, PostgreSQL or a FIFO queue of SQS"
  ],
  parkedKeys: ["the broker cannot hold up the messages of a key after a dead letter", "SQLite or PostgreSQL"],
  fairShares: ["the broker delivers all messages of a queue in one order", "SQLite or PostgreSQL"]
}

/** Returns `undefined` if the broker has the capability. `without`: how to do without it. */
const absence = (name: Optional, capabilities: Capabilities, without: string): Impossible | undefined => {
  if (capabilities[name] === true) return undefined
  const [why, others] = absences[name]
  return { _tag: "Impossible", why: capabilities.obstacles?.[name] ?? why, remedy: `${without}, or use ${others}` }
}

const shares = ({ rateLimit }: ShareLimits, { immediate }: RetryPolicy, capabilities: Capabilities): Support => {
  const missing = absence("fairShares", capabilities, "Remove shareLimits")
  if (missing !== undefined || rateLimit === undefined || immediate === 0) return missing ?? Exact
  return {
    _tag: "Impossible",
    why: "the broker counts deliveries, and an immediate retry needs none",
    remedy: "Set retry.immediate to 0"
  }
}

const ownDeadLetters = (queue: string): Finding => ({
  field: "retry.deadLetter",
  support: {
    _tag: "Impossible",
    why: "the queue is its own dead-letter queue: its dead letters would be consumed again for ever",
    remedy: `Set deadLetter to another queue, or remove it to use ${queue}.dlq`
  }
})

/**
 * Checks each requirement against the capabilities. If `queue` is given, it also checks that the queue is not its own
 * dead-letter queue.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Backoff, Broker, RetryPolicy } from "@requeue/core"
 * import { Feasibility } from "@requeue/core/port"
 * import { Effect } from "effect"
 *
 * const retry = RetryPolicy.make({ backoff: Backoff.constant("1 hour") })
 * const program = Effect.map(Broker.Broker, ({ capabilities }) =>
 *   Feasibility.check({ retry, onLimit: "fail" }, capabilities).map(({ support, field }) => `${field}: ${support._tag}`)
 * )
 * await Effect.runPromise(Effect.provide(program, MemoryBroker.layer())) // => ["retry.backoff: Exact"]
 * ```
 */
export const check = (
  requirements: Requirements,
  capabilities: Capabilities,
  queue?: string
): ReadonlyArray<Finding> => {
  const { backoff } = requirements.retry
  const findings: Array<Finding> = []
  if (queue !== undefined && deadLetterQueues(requirements.retry, queue).includes(queue))
    findings.push(ownDeadLetters(queue))
  if (requirements.retry.afterDeadLetter === "park") {
    const missing = absence("parkedKeys", capabilities, 'Set afterDeadLetter to "continue"')
    findings.push({ field: "retry.afterDeadLetter", support: missing ?? Exact })
  }
  if (backoff !== undefined) {
    findings.push({
      field: "retry.backoff",
      support: delay(delaysOf(requirements.retry, backoff), capabilities.retryDelay, requirements.onLimit)
    })
  }
  if (requirements.retryDelay !== undefined) {
    findings.push({
      field: "retryDelay",
      support: delay([requirements.retryDelay], capabilities.retryDelay, requirements.onLimit)
    })
  }
  if (requirements.shareLimits !== undefined) {
    const support = shares(requirements.shareLimits, requirements.retry, capabilities)
    findings.push({ field: "shareLimits", support })
  }
  if (requirements.handlerTimeout !== undefined) {
    findings.push({ field: "handlerTimeout", support: lease(requirements.handlerTimeout, capabilities) })
  }
  return findings
}

/** The most retries whose delays are computed one by one. */
const most = 100

/** Returns the shortest and the longest delay of each retry; of more than 100 retries, also the longest of the backoff. */
const delaysOf = ({ maxAttempts }: RetryPolicy, backoff: Backoff.Backoff): ReadonlyArray<Delay.Delay> => {
  const attempts = Array.from({ length: Math.min(maxAttempts, most + 1) - 1 }, (_, index) => index + 1)
  const delays = attempts.flatMap((attempt) => Backoff.range(backoff, attempt))
  return maxAttempts > most ? [...delays, Backoff.longest(backoff)] : delays
}

/** Returns the error of the first requirement that the broker cannot meet; `undefined` if it meets all. */
export const refusal = (
  findings: ReadonlyArray<Finding>,
  capabilities: Capabilities,
  queue: string
): ConfigurationError | undefined => {
  for (const { support, field } of findings) {
    if (support._tag !== "Impossible") continue
    return new ConfigurationError({
      field,
      detail: support.why,
      remedy: support.remedy,
      broker: capabilities.broker,
      queue
    })
  }
  return undefined
}

/**
 * Returns the error of a message whose key or `fairBy` the broker cannot honour; `undefined` if it can. An adapter never gets such a
 * message.
 */
export const refusalOf = (
  { fairBy, place, queue }: Pick<Outgoing, "fairBy" | "place" | "queue">,
  capabilities: Capabilities,
  operation = "publish"
): BrokerError | undefined => {
  const missing =
    (place && absence("keyedOrder", capabilities, "Send without key")) ??
    (fairBy === undefined ? undefined : absence("fairShares", capabilities, "Send without fairBy"))
  if (missing === undefined) return undefined
  const { remedy, why: detail } = missing
  return new BrokerError({ broker: capabilities.broker, operation, queue, reason: "Unsupported", detail, remedy })
}
