/**
 * Plans a queue: the exchanges, queues, bindings and arguments that it and its retry policy become, as data.
 *
 * Pure. The adapter declares exactly the objects of the plan, and `format` prints them, so that a plan can be reviewed,
 * compared and tested without a broker. The name of an object has everything that cannot be changed later (version of the
 * layout, queue type, TTL), so that another policy adds objects and never meets PRECONDITION_FAILED. The arguments of a
 * work queue do not depend on the policy at all.
 */
import { ConfigurationError, type RetryPolicy } from "@requeue/core/adapter-kit"
import type { NativeBinding, NativeExchange, NativeObject, NativeQueue } from "./internal/declare/objects.ts"
import * as Objects from "./internal/declare/objects.ts"
import * as Topologies from "./internal/declare/topologies/index.ts"
import type { Route } from "./internal/declare/topologies/topology.ts"
import * as Names from "./internal/names.ts"
import * as Version from "./internal/version.ts"
import type { Settings } from "./RabbitMqOptions.ts"

export type { NativeBinding, NativeExchange, NativeObject, NativeQueue, Route }

/** The oldest server whose quorum queues have TTL and at-least-once dead-lettering. */
export const oldestServer = "3.10"

/** How a queue is set up, and how messages get into it. */
export interface Plan {
  readonly queue: string
  /** The name of the topology that keeps the delays. */
  readonly topology: string
  /** The objects that must exist before the first delivery, in the order in which they are declared. */
  readonly objects: ReadonlyArray<NativeObject>
  /** Notes for people on the topology, such as of head-of-line blocking. */
  readonly notes: ReadonlyArray<string>
  /** The route of a message that must not arrive before `delay` milliseconds (> 0) have passed. */
  readonly route: (delay: number) => Route
  /** Milliseconds by which the queue itself delays the `count`th counted return; `undefined` where it does not. */
  readonly native: ((count: number) => number) | undefined
  /** Returns after which the server itself gives a message of the queue up, see {@link deliveryLimit}. */
  readonly deliveryLimit: number
  /** The queue whose messages go round until they are due; `undefined` in most topologies. */
  readonly waiting: string | undefined
}

/** The queue that is planned. */
export interface Request {
  readonly queue: string
  /** The policy of its consumer. Default: none, as for a producer, which knows no policy. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  /** Its dead-letter queues; the server's own dead letters go to the first. Default: none. */
  readonly deadLetterQueues?: ReadonlyArray<string> | undefined
}

/** A work queue or dead-letter queue, with its arguments. */
export const queue = (name: string, settings: Settings): NativeQueue => {
  const own = settings.queues[name]
  const planned =
    settings.queueType === "quorum"
      ? {
          "x-queue-type": "quorum",
          "x-delivery-limit": settings.deliveryLimit,
          "x-dead-letter-exchange": Names.dead(settings),
          "x-dead-letter-routing-key": name,
          "x-dead-letter-strategy": "at-least-once",
          "x-overflow": "reject-publish"
        }
      : { "x-dead-letter-exchange": Names.dead(settings), "x-dead-letter-routing-key": name }
  return Objects.queue(name, { ...planned, ...own?.arguments }, own?.assert ?? settings.assert)
}

/** The delivery limit that RabbitMQ 4.0 and later gives a quorum queue without one. */
const serverLimit = 20

/** The smallest delivery limit that leaves room for replacing a message before the server gives it up. */
const smallestLimit = 4

/**
 * The delivery limit that is reckoned with: the returns after which the server itself gives a message of this queue up, or
 * `Infinity`. The limit of a queue that somebody else declares is not known, unless it is among the queue's arguments in
 * the options; it may be the server's own.
 */
export const deliveryLimit = (name: string, settings: Settings): number => {
  const own = settings.queues[name]
  const limit = own?.arguments?.["x-delivery-limit"]
  if (typeof limit === "number") return limit < 0 ? Number.POSITIVE_INFINITY : limit
  const isDeclared = (own?.assert ?? settings.assert) === "declare"
  return isDeclared ? settings.deliveryLimit : Math.min(settings.deliveryLimit, serverLimit)
}

/** The error of a limit by which the server gives a message up before the policy does. */
const tooSmall = (
  { queue: name, retry }: Request,
  settings: Settings
): ConfigurationError.ConfigurationError | undefined => {
  const limit = deliveryLimit(name, settings)
  if (retry === undefined || settings.queueType === "classic") return undefined
  if (limit >= smallestLimit || retry.maxDeliveries <= limit) return undefined
  return new ConfigurationError.ConfigurationError({
    field: `queues.${name}.arguments.x-delivery-limit`,
    queue: name,
    broker: "rabbitmq",
    detail: `the server gives a message up after ${limit + 1} deliveries, and the policy allows ${retry.maxDeliveries}`,
    remedy: `Give the queue a limit of ${smallestLimit} or more: any policy works with it`
  })
}

/** A queue, its bindings, and the exchanges for its delayed messages and for those that the server itself gives up. */
export const home = (name: string, settings: Settings): ReadonlyArray<NativeObject> => [
  ...Objects.safetyNet(settings),
  queue(name, settings),
  Objects.binding(Names.deliver(settings), name, name),
  ...(settings.queues[name]?.bindings ?? []).map(({ exchange, routingKey }) =>
    Objects.binding(exchange, name, routingKey)
  )
]

/**
 * Plans a queue for a server of this version, for example `4.3.6`.
 *
 * Answers a `ConfigurationError` when the server is too old, the topology cannot keep the policy's delays, or the queue's
 * delivery limit leaves no room for the policy.
 *
 * @example
 * ```ts
 * import { RabbitMqOptions, RabbitMqPlan } from "@requeue/adapter-rabbitmq"
 * import * as Result from "effect/Result"
 *
 * const settings = Result.getOrThrow(RabbitMqOptions.decode({ topology: "levels" }))
 * const plan = RabbitMqPlan.make({ queue: "orders" }, settings, "4.3.6")
 * "route" in plan && plan.route(70).kept // => 100
 * ```
 */
export const make = (
  { deadLetterQueues = [], queue: name, retry }: Request,
  settings: Settings,
  serverVersion: string
): Plan | ConfigurationError.ConfigurationError => {
  const refusal = Version.refusal(serverVersion) ?? tooSmall({ queue: name, retry }, settings)
  if (refusal !== undefined) return refusal
  const topology = Topologies.choose({ queue: name, retry, settings, serverVersion })
  if (topology instanceof ConfigurationError.ConfigurationError) return topology
  const [first] = deadLetterQueues
  const objects = [
    ...home(name, settings),
    ...deadLetterQueues.flatMap((letters) => home(letters, settings)),
    // The server's own dead letters, from the delivery limit, go where those of the policy go.
    ...(first === undefined ? [] : [Objects.binding(Names.dead(settings), first, name)]),
    ...topology.objects
  ].map((object) => (topology.amend === undefined ? object : topology.amend(object)))
  return {
    queue: name,
    topology: topology.name,
    objects: Objects.distinct(objects),
    notes: topology.notes,
    route: topology.route,
    native: topology.native,
    deliveryLimit: deliveryLimit(name, settings),
    waiting: topology.waiting
  }
}

/** The plan as a table for people. */
export const format = ({ notes, objects, queue: name, topology }: Plan): string => {
  const rows = [["object", "name", "details"], ...objects.map(Objects.describe)]
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]!.length)))
  const table = rows.map((row) =>
    row
      .map((cell, column) => (column < 2 ? cell.padEnd(widths[column]!) : cell))
      .join("  ")
      .trimEnd()
  )
  return [`queue ${name}, topology ${topology}`, ...table, ...notes.map((note) => `note: ${note}`)].join("\n")
}
