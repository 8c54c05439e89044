/**
 * What an operator does beside running consumers: look at how a queue is set up, and take away delay queues that no
 * policy uses any more.
 *
 * Both need the server's management interface: give the option `management`.
 */
import { type BrokerError, ConfigurationError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Declarer from "./internal/declare/declare.ts"
import * as Link from "./internal/connect/connection.ts"
import * as Management from "./internal/inspect/management.ts"
import * as Names from "./internal/names.ts"
import * as Version from "./internal/version.ts"
import { decode, type Options, type Settings } from "./RabbitMqOptions.ts"

/** One thing that a queue should have. */
export interface Finding {
  readonly about: "queue" | "delivery limit" | "dead letters" | "consumer timeout"
  readonly isGood: boolean
  readonly detail: string
}

/** Limits of the server itself that a queue has unless it is declared with others. */
const serverLimit = (version: string): string => (Version.isAtLeast(version, "4.0") ? "20" : "none")

/** What a queue's arguments say; pure. */
export const judge = (queue: Management.QueueInfo | undefined, serverVersion: string): ReadonlyArray<Finding> => {
  if (queue === undefined) return [{ about: "queue", isGood: false, detail: "it does not exist" }]
  const args = queue.arguments
  const type = args["x-queue-type"] ?? "classic"
  const limit = args["x-delivery-limit"]
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
      isGood: type !== "quorum" || typeof limit === "number",
      detail: typeof limit === "number" ? `${limit}` : `the server's own: ${serverLimit(serverVersion)}`
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
    const link = yield* Link.make(settings, "operator")
    const declarer = yield* Declarer.make(link, settings)
    return { settings, management, declarer, version: link.current()!.connection.version }
  })

/** How a queue is set up, as the server knows it. */
export const verify = (
  queue: string,
  options: Options
): Effect.Effect<ReadonlyArray<Finding>, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { management, version } = yield* open(options)
      const queues = yield* management.queues
      return judge(
        queues.find(({ name }) => name === queue),
        version
      )
    })
  )

/** Rungs of ladders: levels belong together, and are as many as they are for ever. */
const isRung = (name: string, settings: Settings): boolean => {
  const rest = name.startsWith(Names.own(settings)) ? name.slice(Names.own(settings).length) : ""
  return /^[qc]\.delay\.\d+$/.test(rest)
}

/** Delay queues of the ladder that hold no message. */
export const idleDelays = (
  options: Options
): Effect.Effect<ReadonlyArray<string>, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { management, settings } = yield* open(options)
      const queues = yield* management.queues
      return queues.filter(({ messages, name }) => messages === 0 && isRung(name, settings)).map(({ name }) => name)
    })
  )

/**
 * Removes delay queues that hold no message, with the exchanges in front of them; answers their names.
 *
 * Only for delays that no running consumer's policy has: one that is in use is made again by its next retry, and a retry
 * in the very moment of the removal would be lost with the queue.
 */
export const removeDelays = (
  names: ReadonlyArray<string>,
  options: Options
): Effect.Effect<ReadonlyArray<string>, BrokerError.BrokerError | ConfigurationError.ConfigurationError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { declarer, management, settings } = yield* open(options)
      const queues = yield* management.queues
      const removed: Array<string> = []
      for (const { messages, name } of queues) {
        if (!names.includes(name) || !isRung(name, settings) || messages !== 0) continue
        yield* declarer.onChannel("remove", name, async (channel) => {
          await channel.deleteExchange(name)
          await channel.deleteQueue(name)
        })
        removed.push(name)
      }
      return removed
    })
  )
