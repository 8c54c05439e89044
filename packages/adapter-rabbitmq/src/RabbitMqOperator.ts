/**
 * Checks how a queue is set up, and lists and removes what a configuration no longer wants.
 *
 * All of this needs the server's management interface, but for a shorter list: give its address as the option `management`.
 */
import { type Adapter, type BrokerError, ConfigurationError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Connection from "./internal/connect/connection.ts"
import * as Declarer from "./internal/declare/declare.ts"
import * as Cleaning from "./internal/inspect/cleaning.ts"
import * as FormerPrefix from "./internal/inspect/formerPrefix.ts"
import type * as Listing from "./internal/inspect/listing.ts"
import * as Management from "./internal/inspect/management.ts"
import * as Version from "./internal/version.ts"
import { decode, type Options } from "./RabbitMqOptions.ts"
import * as RabbitMqQueue from "./RabbitMqQueue.ts"

export type { Cleaned, Report } from "./internal/inspect/cleaning.ts"
export type { Listing, Scope, StaleObject } from "./internal/inspect/listing.ts"

/** A property that a queue should have. */
export interface Finding {
  /** The property. */
  readonly about: "queue" | "delivery limit" | "dead letters" | "consumer timeout"
  readonly isGood: boolean
  /** The value that was found, in words. */
  readonly detail: string
}

/** The delivery limit that a quorum queue has: the smallest of its argument and its policy's, else the server's own. */
const limitOf = ({ arguments: args, policy = {} }: Management.QueueInfo, version: string): number => {
  const given = [args["x-delivery-limit"], policy["delivery-limit"]].filter((limit) => typeof limit === "number")
  const limit = given.length > 0 ? Math.min(...given) : Version.isAtLeast(version, "4.0") ? 20 : -1
  return limit < 0 ? Number.POSITIVE_INFINITY : limit
}

/**
 * Checks a queue's arguments; `undefined` is a queue that does not exist. `reckoned` is the delivery limit of its plan: if
 * the queue's own is below, the server gives up messages that are still to be retried. Default: 0, any limit will do. Pure.
 */
export const findingsOf = (
  queue: Management.QueueInfo | undefined,
  serverVersion: string,
  reckoned = 0
): ReadonlyArray<Finding> => {
  if (queue === undefined) return [{ about: "queue", isGood: false, detail: "it does not exist" }]
  const args = queue.arguments
  const type = args["x-queue-type"] ?? "classic"
  const limit = limitOf(queue, serverVersion)
  const exchange = args["x-dead-letter-exchange"]
  const safe = args["x-dead-letter-strategy"] === "at-least-once" && args["x-overflow"] === "reject-publish"
  const timeout = args["x-consumer-timeout"]
  return [
    {
      about: "queue",
      isGood: type === "quorum",
      detail: type === "quorum" ? "quorum" : `${String(type)}: no count of deliveries, no replicas`
    },
    {
      about: "delivery limit",
      isGood: type !== "quorum" || limit >= reckoned,
      detail:
        limit >= reckoned
          ? `${limit === Number.POSITIVE_INFINITY ? "none" : limit}`
          : `${limit}, and ${reckoned} is reckoned with: raise it, or tell the queue's x-delivery-limit in the option queues`
    },
    {
      about: "dead letters",
      isGood: typeof exchange === "string" && safe,
      detail:
        typeof exchange !== "string"
          ? "what the server gives up is lost"
          : safe
            ? `at least once, to exchange ${exchange}`
            : `at most once, to exchange ${exchange}`
    },
    {
      about: "consumer timeout",
      isGood: true,
      detail:
        typeof timeout === "number"
          ? `${timeout} ms`
          : "the server's own, 30 minutes unless it is configured otherwise: handlers must end before"
    }
  ]
}

const open = (options: Options) =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(decode(options))
    const management = Management.make(settings)
    if (management === undefined) {
      return yield* new ConfigurationError.ConfigurationError({
        field: "management",
        broker: "rabbitmq",
        detail: "queues can only be listed by the management interface",
        remedy: "Give its address, for example http://localhost:15672"
      })
    }
    const connection = yield* Connection.make(settings, "operator")
    return { management, version: connection.current()!.driver.version }
  })

/**
 * Checks how a queue is set up on the server.
 *
 * @example
 * ```ts
 * import { RabbitMqOperator } from "@requeue/adapter-rabbitmq"
 * import * as Effect from "effect/Effect"
 *
 * const wrong = Effect.map(
 *   RabbitMqOperator.verify("orders", { url: "amqp://localhost", management: "http://localhost:15672" }),
 *   (findings) => findings.filter(({ isGood }) => !isGood)
 * )
 * ```
 */
export const verify = (
  queue: string,
  options: Options
): Effect.Effect<ReadonlyArray<Finding>, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { management, version } = yield* open(options)
      return findingsOf(yield* management.queue(queue), version, RabbitMqQueue.smallestLimit)
    })
  )

/** The operations on stale objects of a server, for as long as the scope lives. */
const cleaning = (options: Options) =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(decode(options))
    const connection = yield* Connection.make(settings, "operator")
    return FormerPrefix.checked(
      Cleaning.make(settings, connection, yield* Declarer.make(connection, settings)),
      settings
    )
  })

/**
 * Lists the objects of ours that a configuration no longer wants, with their messages. It changes nothing.
 *
 * `requests` are the queues of the configuration with their policies. A row claims no more than that these do not want the
 * object: a delay that another service uses is one of its own, which it makes again when it is removed.
 */
export const stale = (
  requests: ReadonlyArray<Adapter.PlanRequest>,
  options: Options,
  scope: Listing.Scope = {}
): Effect.Effect<Listing.Listing, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(Effect.flatMap(cleaning(options), (on) => on.stale(requests, scope)))

/**
 * Removes what {@link stale} lists, as far as it is not in use: its messages are moved to where they belong, with what is
 * left of their delays. It needs the management interface, and takes at least 15 s. Interrupted, it loses nothing, and can
 * be run again.
 */
export const clean = (
  requests: ReadonlyArray<Adapter.PlanRequest>,
  options: Options,
  scope: Listing.Scope = {},
  signal?: AbortSignal
): Effect.Effect<Cleaning.Report, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(Effect.flatMap(cleaning(options), (on) => on.clean(requests, scope, signal)))
