/**
 * A queue as it is on the server: its type, limits and arguments, and the source of this information.
 *
 * These facts belong to the queue, not to the options of a connection: a queue that another program declared is
 * consumed as it is. The plan and the settlements follow from this value. Pure.
 */
import { ConfigurationError, Delay, type RetryPolicy } from "@requeue/core/port"
import type { Arguments } from "./internal/declare/objects.ts"
import * as Version from "./internal/version.ts"
import type { Settings } from "./RabbitMqOptions.ts"

/** The type of a queue; `unknown` if no source reports it. https://www.rabbitmq.com/docs/queues */
export type Type = "quorum" | "classic" | "stream" | "unknown"

/**
 * The source of the facts about a queue:
 *
 * - `declaration`: the adapter declares the queue, and the server rejects a declaration that differs.
 * - `management`: the management interface, which also reports the server's policies, some seconds late.
 * - `refusal`: the server's refusals of test requests. They name the arguments, but no delivery limit and no policies.
 * - `options`: the queue's `arguments` in the options.
 * - `nobody`: no source.
 */
export type ToldBy = "declaration" | "management" | "refusal" | "options" | "nobody"

/** A queue of the server. */
export interface RabbitMqQueue {
  readonly name: string
  readonly type: Type
  /**
   * How many times a message may return before the server dead-letters it; `Infinity` means without limit, `undefined`
   * unknown.
   */
  readonly deliveryLimit: number | undefined
  /** The known arguments, including those that a policy of the server sets. */
  readonly arguments: Arguments
  /** Whether the adapter declares the queue and may bind it. The adapter never changes any other queue. */
  readonly isOurs: boolean
  readonly toldBy: ToldBy
}

/** The delivery limit that RabbitMQ 4.0 and later give a quorum queue by default. */
const serverLimit = 20

/** The smallest delivery limit that leaves room to replace a message before the server dead-letters it. */
export const smallestLimit = 4

/** Returns whether the adapter declares a queue, only checks that it exists, or does not touch it. */
export const assertOf = (name: string, settings: Settings): Settings["assert"] =>
  settings.queues[name]?.assert ?? settings.assert

const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

/** Returns the type of a queue that is declared with these arguments. */
export const typeOf = (args: Arguments): Type => {
  const type = args["x-queue-type"] ?? "classic"
  return type === "quorum" || type === "classic" || type === "stream" ? type : "unknown"
}

/** Returns the smallest limit; a negative limit means none. */
const smallest = (...limits: ReadonlyArray<unknown>): number | undefined => {
  const given = limits.filter((limit) => typeof limit === "number").map((limit) => (limit < 0 ? Infinity : limit))
  return given.length === 0 ? undefined : Math.min(...given)
}

/** Arguments for which the smaller value of queue and policies applies. */
const limits = ["x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes"]

/**
 * Returns the arguments that apply to a queue. These are its own arguments, and those of the server's policies that it
 * lacks. Of limits, the smaller value applies. Of the queue's own delays, the policy decides the type, and the smaller
 * value applies.
 */
const effective = (args: Arguments, policy: Arguments): Arguments => {
  const ofPolicy = Object.fromEntries(Object.entries(policy).map(([key, value]) => [`x-${key}`, value]))
  const both = { ...ofPolicy, ...args }
  const delaysOf = (source: Arguments) => [source["x-delayed-retry-min"], source["x-delayed-retry-max"]]
  const [min, max] = delaysOf(args).map((value, index) => smallest(value, delaysOf(ofPolicy)[index]))
  const bounds = limits.flatMap((name) => {
    const value = smallest(args[name], ofPolicy[name])
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    ...both,
    ...Object.fromEntries(bounds),
    ...("x-delayed-retry-type" in ofPolicy ? { "x-delayed-retry-type": ofPolicy["x-delayed-retry-type"] } : {}),
    ...(min === undefined ? {} : { "x-delayed-retry-min": min }),
    ...(max === undefined ? {} : { "x-delayed-retry-max": max })
  }
}

/** Describes a queue by its arguments and by the server's policies, as the management interface reports them. */
export const managed = (
  name: string,
  told: { readonly arguments: Arguments; readonly policy: Arguments | undefined; readonly type?: Type | undefined },
  serverVersion: string,
  isOurs: boolean
): RabbitMqQueue => {
  const type = told.type ?? typeOf(told.arguments)
  const limit = smallest(told.arguments["x-delivery-limit"], told.policy?.["delivery-limit"])
  const otherwise = Version.isAtLeast(serverVersion, "4.0") ? serverLimit : Number.POSITIVE_INFINITY
  // A policy may have lowered the limit. A queue of ours still keeps such messages as dead letters.
  const isKnown = isOurs || told.policy !== undefined
  return {
    name,
    type,
    deliveryLimit: type !== "quorum" ? Number.POSITIVE_INFINITY : isKnown ? (limit ?? otherwise) : undefined,
    arguments: effective(told.arguments, told.policy ?? {}),
    isOurs,
    toldBy: "management"
  }
}

/** Describes a queue by the arguments that the server's refusals name. Its limit and policies are unknown. */
export const refused = (name: string, type: Type, args: Arguments): RabbitMqQueue => ({
  name,
  type,
  deliveryLimit: type === "classic" ? Number.POSITIVE_INFINITY : undefined,
  arguments: { ...args, ...(type === "unknown" ? {} : { "x-queue-type": type }) },
  isOurs: false,
  toldBy: "refusal"
})

/** Describes a queue by the options; `planned` are the arguments of its declaration. */
export const ofOptions = (name: string, planned: Arguments, settings: Settings): RabbitMqQueue => {
  const own = settings.queues[name]?.arguments ?? {}
  const limit = smallest(own["x-delivery-limit"])
  if (assertOf(name, settings) === "declare") {
    const type = typeOf(planned)
    const declared = smallest(planned["x-delivery-limit"]) ?? Number.POSITIVE_INFINITY
    const deliveryLimit = type === "quorum" ? declared : Number.POSITIVE_INFINITY
    return { name, type, deliveryLimit, arguments: planned, isOurs: true, toldBy: "declaration" }
  }
  const type = own["x-queue-type"] === undefined ? "unknown" : typeOf(own)
  const deliveryLimit = type === "classic" ? Number.POSITIVE_INFINITY : limit
  const toldBy = Object.keys(own).length === 0 ? "nobody" : "options"
  return { name, type, deliveryLimit, arguments: own, isOurs: false, toldBy }
}

/**
 * Returns a function: for how many milliseconds the queue itself delays a message at its `count`th failed return. Returns
 * `undefined` if the queue does not delay. Servers before 4.3 accept the arguments and ignore them.
 * https://www.rabbitmq.com/docs/quorum-queues
 */
export const delays = (
  { arguments: args, type }: Pick<RabbitMqQueue, "arguments" | "type">,
  serverVersion: string
): ((count: number) => number) | undefined => {
  const kind = args["x-delayed-retry-type"]
  const min = number(args["x-delayed-retry-min"])
  if (type !== "quorum" || !Version.hasFailureCount(serverVersion)) return undefined
  if ((kind !== "failed" && kind !== "all") || min === undefined || min <= 0) return undefined
  const max = number(args["x-delayed-retry-max"]) ?? min
  return (count) => Math.min(min * Math.max(1, count), max)
}

const maxLength = ({ arguments: args }: RabbitMqQueue): number | undefined =>
  number(args["x-max-length"]) ?? number(args["x-max-length-bytes"])

/** Whether a full queue drops its oldest message, which is the default. */
const dropsHead = (found: RabbitMqQueue): boolean =>
  maxLength(found) !== undefined && (found.arguments["x-overflow"] ?? "drop-head") === "drop-head"

/** Returns the error of a queue that cannot keep this policy, or no policy at all; `undefined` if the queue can. */
export const refusal = (
  found: RabbitMqQueue,
  retry: RetryPolicy.RetryPolicy | undefined,
  settings: Settings
): ConfigurationError.ConfigurationError | undefined => {
  if (retry === undefined) return undefined
  const { arguments: args, deliveryLimit, isOurs, name, type } = found
  const refuse = (field: string, detail: string, remedy: string) =>
    new ConfigurationError.ConfigurationError({ field, detail, remedy, queue: name, broker: "rabbitmq" })
  if (type === "stream") {
    const detail = "the queue is a stream, where an ack does not remove a message and a retry does not requeue it"
    return refuse("queue", detail, "Consume a quorum queue or a classic queue that is bound to the same exchange")
  }
  const isAccepted = isOurs || settings.queues[name]?.arguments?.["x-overflow"] === "drop-head"
  if (dropsHead(found) && retry.maxAttempts > 1 && !isAccepted) {
    const detail = "when the queue is full, each requeued retry makes the server drop its oldest message"
    const accept = `queues["${name}"].arguments: { "x-overflow": "drop-head" }`
    const remedy = `Recreate the queue with x-overflow reject-publish, or accept the loss by ${accept}`
    return refuse(`queues.${name}.arguments.x-overflow`, detail, remedy)
  }
  const limit = deliveryLimit ?? smallest(args["x-delivery-limit"]) ?? Number.POSITIVE_INFINITY
  if (limit >= smallestLimit || retry.maxDeliveries <= limit) return undefined
  const detail = `the server stops redelivering a message after ${limit + 1} deliveries, but the policy allows ${retry.maxDeliveries}`
  // The smaller one of argument and policy applies, and an existing queue's argument cannot be changed.
  const remedy = isOurs
    ? `Set an x-delivery-limit of ${smallestLimit} or more, which works with every policy`
    : `Recreate the queue with an x-delivery-limit of ${smallestLimit} or more, and set no lower limit in a policy of the server`
  return refuse(`queues.${name}.arguments.x-delivery-limit`, detail, remedy)
}

/** Returns notes on limits for handlers. https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout */
export const remarks = ({ arguments: args, name }: RabbitMqQueue): ReadonlyArray<string> => {
  const timeout = number(args["x-consumer-timeout"])
  if (timeout === undefined) return []
  const end = Delay.format(timeout)
  return [`queue ${name}: the server takes messages back after ${end}: set handlerTimeout below that`]
}

/** Returns warnings on a queue that loses messages, whichever program consumes it. */
export const warnings = (queue: RabbitMqQueue): ReadonlyArray<string> => {
  const { arguments: args, name } = queue
  const exchange = args["x-dead-letter-exchange"]
  const then = typeof exchange === "string" ? `go to exchange "${exchange}"` : "are lost"
  const found: Array<string> = []
  const ttl = number(args["x-message-ttl"])
  if (ttl !== undefined)
    found.push(`queue ${name}: messages that stay in it for ${Delay.format(ttl)}, retries too, ${then}`)
  if (dropsHead(queue))
    found.push(`queue ${name}: when it is full, its oldest messages ${then}, also when a retry is requeued`)
  if (maxLength(queue) !== undefined && args["x-overflow"] === "reject-publish-dlx")
    found.push(
      `queue ${name}: when it is full, each attempt to requeue a retry also sends a copy to its dead-letter exchange`
    )
  const expires = number(args["x-expires"])
  if (expires !== undefined)
    found.push(`queue ${name}: it is deleted, with its messages, when unused for ${Delay.format(expires)}`)
  return found
}

/** Returns a line with the queue's type, its delivery limit and the source of these facts. */
export const describe = ({ deliveryLimit, toldBy, type }: RabbitMqQueue): string => {
  const by = {
    declaration: "by its declaration",
    management: "reported by the management interface",
    refusal: "known from the server's refusals",
    options: "known from the options only",
    nobody: "no source describes it"
  }[toldBy]
  if (type !== "quorum") return type === "unknown" ? `of unknown type: ${by}` : `${type}, ${by}`
  const limit =
    deliveryLimit === undefined
      ? "unknown delivery limit"
      : deliveryLimit === Number.POSITIVE_INFINITY
        ? "no delivery limit"
        : `delivery limit ${deliveryLimit}`
  return `quorum, ${limit}, ${by}`
}
