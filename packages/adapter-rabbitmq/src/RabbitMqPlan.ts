/**
 * What a queue and its retry policy become on RabbitMQ, as data: exchanges, queues, bindings and arguments, before
 * anything is done.
 *
 * Pure. The runtime declares exactly what stands here, and `format` prints it, so that a plan can be reviewed, compared
 * and tested without a broker. A name carries everything about its object that cannot be changed later (version of the
 * layout, queue type, TTL), so that changing a policy adds objects and never meets PRECONDITION_FAILED. What a work
 * queue is declared with does not depend on the policy at all.
 */
import { ConfigurationError, type RetryPolicy } from "@requeue/core/adapter-kit"
import * as Names from "./internal/names.ts"
import type { Object } from "./internal/declare/objects.ts"
import * as Objects from "./internal/declare/objects.ts"
import * as Topologies from "./internal/declare/topologies/index.ts"
import type { Route } from "./internal/declare/topologies/topology.ts"
import * as Version from "./internal/version.ts"
import type { Settings } from "./RabbitMqOptions.ts"

export type { Object, Route }

/** The oldest server whose quorum queues have TTL and at-least-once dead-lettering. */
export const oldestServer = "3.10"

export interface Plan {
  readonly queue: string
  /** The topology that was chosen. */
  readonly topology: string
  /** What must exist before the first delivery, in the order in which it is declared. */
  readonly objects: ReadonlyArray<Object>
  /** What of the topology a user should know, such as head-of-line blocking. */
  readonly notes: ReadonlyArray<string>
  /** The way of a message that must not arrive before `delay` milliseconds (> 0) have passed. */
  readonly route: (delay: number) => Route
  /** The delay that the broker itself gives to the `count`th counted return of a message, where it does. */
  readonly native: ((count: number) => number) | undefined
  /** The queue whose messages go round until they are due. */
  readonly waiting: string | undefined
}

export interface Request {
  readonly queue: string
  /** `undefined` for a producer, which knows no policy. */
  readonly retry?: RetryPolicy.RetryPolicy | undefined
  readonly deadLetterQueues?: ReadonlyArray<string> | undefined
}

/** A queue of messages, and what it is declared with. */
export const queue = (name: string, settings: Settings): Object => {
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

/** A queue, what feeds it, and where what the broker itself gives up goes. */
export const home = (name: string, settings: Settings): ReadonlyArray<Object> => [
  ...Objects.safetyNet(settings),
  queue(name, settings),
  Objects.binding(Names.deliver(settings), name, name),
  ...(settings.queues[name]?.bindings ?? []).map(({ exchange, routingKey }) =>
    Objects.binding(exchange, name, routingKey)
  )
]

/**
 * Plans a queue.
 *
 * Answers a `ConfigurationError` when the server is too old, or the topology cannot keep the policy's delays.
 */
export const make = (
  { deadLetterQueues = [], queue: name, retry }: Request,
  settings: Settings,
  serverVersion: string
): Plan | ConfigurationError.ConfigurationError => {
  const refusal = Version.refusal(serverVersion)
  if (refusal !== undefined) return refusal
  const topology = Topologies.choose({ queue: name, retry, settings, serverVersion })
  if (topology instanceof ConfigurationError.ConfigurationError) return topology
  const [first] = deadLetterQueues
  const objects = [
    ...home(name, settings),
    ...deadLetterQueues.flatMap((letters) => home(letters, settings)),
    // What the broker gives up (delivery limit) goes where what we give up goes.
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
