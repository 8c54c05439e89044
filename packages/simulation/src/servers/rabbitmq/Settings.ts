/** The settings that apply to a queue: its arguments, and the policies of the server. Pure. */
import type * as Fields from "./Fields.ts"
import * as Version from "./Version.ts"

/** The type of a queue. */
export type Type = "classic" | "quorum"

/** The settings of a queue. Times are in milliseconds, `Infinity` stands for no limit. */
export interface Settings {
  readonly ttl: number
  readonly expires: number
  readonly maxLength: number
  readonly maxLengthBytes: number
  readonly overflow: "drop-head" | "reject-publish" | "reject-publish-dlx"
  readonly deadLetterExchange: string | undefined
  readonly deadLetterRoutingKey: string | undefined
  /** Whether a dead letter stays until its next queue has it. */
  readonly isAtLeastOnce: boolean
  readonly deliveryLimit: number
  /** The delay of a message that has failed this often, and whether releases are delayed too. */
  readonly retry: { readonly delay: (failures: number) => number; readonly failed: boolean; readonly returned: boolean }
  readonly isSingleActive: boolean
  /** The highest priority; 0 for a queue without priorities. */
  readonly maxPriority: number
}

const none: Settings["retry"] = { delay: () => 0, failed: false, returned: false }

const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)
const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** The limit of 4.0 and later for quorum queues that have none. https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling */
const defaultLimit = 20

/** The queue's own delays, from 4.3 on: they grow with the failures up to a maximum. */
const retryOf = (args: Fields.Table, policy: Fields.Table): Settings["retry"] => {
  const kind = policy["delayed-retry-type"] ?? args["x-delayed-retry-type"]
  const smaller = (name: string) => {
    const found = [number(args[`x-${name}`]), number(policy[name])].filter((value) => value !== undefined)
    return found.length === 0 ? undefined : Math.min(...found)
  }
  const min = smaller("delayed-retry-min")
  if (min === undefined || min <= 0) return none
  const max = smaller("delayed-retry-max") ?? min
  return {
    delay: (failures) => Math.min(min * Math.max(1, failures), max),
    failed: kind === "failed" || kind === "all",
    returned: kind === "returned" || kind === "all"
  }
}

/** The settings of a queue. Of two limits the smaller one applies; otherwise the argument does. */
export const of = (type: Type, args: Fields.Table, policy: Fields.Table, version: string): Settings => {
  const limit = (name: string): number =>
    Math.min(number(args[`x-${name}`]) ?? Infinity, number(policy[name]) ?? Infinity)
  const chosen = (name: string): unknown => args[`x-${name}`] ?? policy[name]
  const isQuorum = type === "quorum"
  const overflow = text(chosen("overflow"))
  const limits = [args["x-delivery-limit"], policy["delivery-limit"]].flatMap((value) => number(value) ?? [])
  const deliveryLimit = Math.min(...limits.map((one) => (one < 0 ? Infinity : one)))
  const isLimited = limits.length > 0 || !Version.isAtLeast(version, "4.0.0")
  return {
    ttl: limit("message-ttl"),
    expires: limit("expires"),
    maxLength: limit("max-length"),
    maxLengthBytes: limit("max-length-bytes"),
    overflow: overflow === "reject-publish" || overflow === "reject-publish-dlx" ? overflow : "drop-head",
    deadLetterExchange: text(chosen("dead-letter-exchange")),
    deadLetterRoutingKey: text(chosen("dead-letter-routing-key")),
    isAtLeastOnce:
      isQuorum && chosen("dead-letter-strategy") === "at-least-once" && chosen("overflow") === "reject-publish",
    deliveryLimit: isQuorum ? (isLimited ? deliveryLimit : defaultLimit) : Infinity,
    retry: isQuorum && Version.isAtLeast(version, "4.3.0") ? retryOf(args, policy) : none,
    isSingleActive: args["x-single-active-consumer"] === true,
    maxPriority: isQuorum ? 0 : (number(args["x-max-priority"]) ?? 0)
  }
}
