/**
 * A queue as it is on the server: its type, its limits and its arguments, and who has told them.
 *
 * They belong to the queue, and not to the options of a connection: a queue that somebody else has made is consumed by
 * what it is. The plan and the settlements follow from this value. Pure.
 */
import { ConfigurationError, Delay, type RetryPolicy } from "@requeue/core/port"
import type { Arguments } from "./internal/declare/objects.ts"
import * as Version from "./internal/version.ts"
import type { Settings } from "./RabbitMqOptions.ts"

/** The type of a queue; `unknown` where nobody has told. https://www.rabbitmq.com/docs/queues */
export type Type = "quorum" | "classic" | "stream" | "unknown"

/**
 * Who has told what a queue is:
 *
 * - `declaration`: the adapter declares it, and the server refuses a declaration that differs.
 * - `management`: the management interface, which knows the server's policies as well, some seconds later.
 * - `refusal`: the server's refusals of questions, which name the arguments but neither the delivery limit nor policies.
 * - `options`: the queue's `arguments` in the options.
 * - `nobody`.
 */
export type ToldBy = "declaration" | "management" | "refusal" | "options" | "nobody"

/** A queue of the server. */
export interface RabbitMqQueue {
  readonly name: string
  readonly type: Type
  /** Returns after which the server gives a message up; `Infinity`: it never does; `undefined`: nobody has told. */
  readonly deliveryLimit: number | undefined
  /** Its arguments, as far as they are known; those that a policy of the server sets are among them. */
  readonly arguments: Arguments
  /** Whether the adapter declares it, and may bind it. Of another queue nothing is changed. */
  readonly isOurs: boolean
  readonly toldBy: ToldBy
}

/** The delivery limit that RabbitMQ 4.0 and later gives a quorum queue without one. */
const serverLimit = 20

/** The smallest delivery limit that leaves room for replacing a message before the server gives it up. */
export const smallestLimit = 4

/** Whether the adapter declares a queue, looks for it only, or does not touch it. */
export const assertOf = (name: string, settings: Settings): Settings["assert"] =>
  settings.queues[name]?.assert ?? settings.assert

const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

/** The type of a queue that is declared with these arguments. */
export const typeOf = (args: Arguments): Type => {
  const type = args["x-queue-type"] ?? "classic"
  return type === "quorum" || type === "classic" || type === "stream" ? type : "unknown"
}

/** The smallest of several limits, where a negative one is none. */
const smallest = (...limits: ReadonlyArray<unknown>): number | undefined => {
  const given = limits.filter((limit) => typeof limit === "number").map((limit) => (limit < 0 ? Infinity : limit))
  return given.length === 0 ? undefined : Math.min(...given)
}

/** Arguments of which the smaller value counts, that of the queue or that of the policies. */
const limits = ["x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes"]

/**
 * The arguments that count: those of the queue, and policies of the server where it has none. Of limits, the smaller value counts.
 * Of the delays that a queue gives by itself, the policy decides the type, and the smaller value counts.
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

/** A queue by its arguments and the definition of the server's policies for it, as the management interface tells them. */
export const managed = (
  name: string,
  told: { readonly arguments: Arguments; readonly policy: Arguments | undefined; readonly type?: Type | undefined },
  serverVersion: string,
  isOurs: boolean
): RabbitMqQueue => {
  const type = told.type ?? typeOf(told.arguments)
  const limit = smallest(told.arguments["x-delivery-limit"], told.policy?.["delivery-limit"])
  const otherwise = Version.isAtLeast(serverVersion, "4.0") ? serverLimit : Number.POSITIVE_INFINITY
  // A policy may have made the limit smaller. What a queue of ours gives up then is a dead letter.
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

/** A queue by the arguments that refused questions have named: neither the limit nor the policies are among them. */
export const refused = (name: string, type: Type, args: Arguments): RabbitMqQueue => ({
  name,
  type,
  deliveryLimit: type === "classic" ? Number.POSITIVE_INFINITY : undefined,
  arguments: { ...args, ...(type === "unknown" ? {} : { "x-queue-type": type }) },
  isOurs: false,
  toldBy: "refusal"
})

/** A queue as the options tell it, `planned` being the arguments that it would be declared with. */
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
 * Milliseconds by which a queue itself delays the `count`th return that it counts as failed; `undefined` for one that does
 * not. Servers before 4.3 take the arguments and do nothing. https://www.rabbitmq.com/docs/quorum-queues
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

/** Whether a full queue makes room by dropping its oldest message, as it does by default. */
const dropsHead = (found: RabbitMqQueue): boolean =>
  maxLength(found) !== undefined && (found.arguments["x-overflow"] ?? "drop-head") === "drop-head"

/** The error of a queue with which no policy, or not this one, can be kept; `undefined` for one that will do. */
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
    const detail = "it is a stream, which keeps its messages: none is taken out by an ack, none put back by a retry"
    return refuse("queue", detail, "Consume a quorum queue or a classic queue that is bound to the same exchange")
  }
  const isAccepted = isOurs || settings.queues[name]?.arguments?.["x-overflow"] === "drop-head"
  if (dropsHead(found) && retry.maxAttempts > 1 && !isAccepted) {
    const detail = "when the queue is full, each retry that is put back makes the server drop its oldest message"
    const accept = `queues["${name}"].arguments: { "x-overflow": "drop-head" }`
    const remedy = `Make the queue again with x-overflow reject-publish, or accept the loss by ${accept}`
    return refuse(`queues.${name}.arguments.x-overflow`, detail, remedy)
  }
  const limit = deliveryLimit ?? smallest(args["x-delivery-limit"]) ?? Number.POSITIVE_INFINITY
  if (limit >= smallestLimit || retry.maxDeliveries <= limit) return undefined
  const detail = `the server gives a message up after ${limit + 1} deliveries, and the policy allows ${retry.maxDeliveries}`
  // The smaller one of argument and policy holds, and the argument of a queue that exists cannot be changed.
  const remedy = isOurs
    ? `Give the queue a limit of ${smallestLimit} or more: any policy works with it`
    : `Make the queue again with an x-delivery-limit of ${smallestLimit} or more, and give it no less by a policy of the server`
  return refuse(`queues.${name}.arguments.x-delivery-limit`, detail, remedy)
}

/** Remarks on what handlers must know of a queue. https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout */
export const remarks = ({ arguments: args, name }: RabbitMqQueue): ReadonlyArray<string> => {
  const timeout = number(args["x-consumer-timeout"])
  if (timeout === undefined) return []
  const end = Delay.format(timeout)
  return [`queue ${name}: the server takes messages back after ${end}: set handlerTimeout below that`]
}

/** Remarks on a queue that loses messages of its own accord, whoever consumes it. */
export const warnings = (queue: RabbitMqQueue): ReadonlyArray<string> => {
  const { arguments: args, name } = queue
  const exchange = args["x-dead-letter-exchange"]
  const then = typeof exchange === "string" ? `go to exchange "${exchange}"` : "are lost"
  const found: Array<string> = []
  const ttl = number(args["x-message-ttl"])
  if (ttl !== undefined) found.push(`queue ${name}: messages that wait for ${Delay.format(ttl)}, retries too, ${then}`)
  if (dropsHead(queue))
    found.push(`queue ${name}: when it is full, its oldest messages ${then}, also when a retry is put back`)
  if (maxLength(queue) !== undefined && args["x-overflow"] === "reject-publish-dlx")
    found.push(`queue ${name}: when it is full, each attempt to put a retry back also leaves a copy at its exchange`)
  const expires = number(args["x-expires"])
  if (expires !== undefined)
    found.push(`queue ${name}: it is deleted, with its messages, when unused for ${Delay.format(expires)}`)
  return found
}

/** A line that says what the queue is, and who has told so. */
export const describe = ({ deliveryLimit, toldBy, type }: RabbitMqQueue): string => {
  const by = {
    declaration: "by its declaration",
    management: "told by the management interface",
    refusal: "told by the server's refusals",
    options: "told by the options alone",
    nobody: "nobody has told"
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
