/** Checks how a queue is set up. This requires the management interface: give its address as the option `management`. */
import { type BrokerError, ConfigurationError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Connection from "./internal/connect/connection.ts"
import * as Management from "./internal/inspect/management.ts"
import * as Version from "./internal/version.ts"
import { decode, type Options } from "./RabbitMqOptions.ts"
import * as RabbitMqQueue from "./RabbitMqQueue.ts"

/** The result of checking one property of a queue. */
export interface Finding {
  /** The property that was checked. */
  readonly about: "queue" | "delivery limit" | "dead letters" | "consumer timeout"
  readonly isGood: boolean
  /** The value found, in words. */
  readonly detail: string
}

/**
 * The delivery limit of a quorum queue: the smaller one of its argument and its policy's, otherwise the server's
 * default.
 */
const limitOf = ({ arguments: args, policy = {} }: Management.QueueInfo, version: string): number => {
  const given = [args["x-delivery-limit"], policy["delivery-limit"]].filter((limit) => typeof limit === "number")
  const limit = given.length > 0 ? Math.min(...given) : Version.isAtLeast(version, "4.0") ? 20 : -1
  return limit < 0 ? Number.POSITIVE_INFINITY : limit
}

/**
 * Checks a queue as the server reports it; `undefined` means that the queue does not exist. `reckoned` is the delivery
 * limit in the queue's plan. With a lower limit, the server dead-letters messages that still have retries. Default: 0,
 * which accepts any limit. Pure.
 */
export const findingsOf = (
  queue: Management.QueueInfo | undefined,
  serverVersion: string,
  reckoned = 0
): ReadonlyArray<Finding> => {
  if (queue === undefined) return [{ about: "queue", isGood: false, detail: "the queue does not exist" }]
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
          : `${limit}, but the plan assumes ${reckoned}: raise it, or set the queue's x-delivery-limit in the option queues`
    },
    {
      about: "dead letters",
      isGood: typeof exchange === "string" && safe,
      detail:
        typeof exchange !== "string"
          ? "no dead-letter exchange: messages over the delivery limit are lost"
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
        remedy: "Set management to its address, for example http://localhost:15672"
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
