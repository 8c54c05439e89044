/** The page of a queue. */
import { QueueStatus } from "@requeue/operations"
import { ConsumerBackoff } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { Asked } from "../pages/outage.ts"
import { usual } from "../pages/outage.ts"
import { queue } from "../pages/queue.ts"
import { Refusal } from "../refusal.ts"
import type { Connection } from "../work/connections.ts"
import * as Deadline from "../work/deadline.ts"
import { numberOf, wrong } from "./fields.ts"
import type { Dependencies, Route } from "./route.ts"
import type { Queue } from "../../BrokerSource.ts"

const unknown = (detail: string) => new Refusal({ status: 404, detail, remedy: "Go back to the overview" })

/** Returns the configured queue that the fields name. */
const queueOf = (fields: URLSearchParams, { connections }: Dependencies) => {
  const [broker, name] = [fields.get("broker") ?? "", fields.get("queue") ?? ""]
  const connection = connections.get(broker)
  if (connection === undefined) return Effect.fail(unknown(`there is no broker ${broker}`))
  const found = connection.queues.find((each) => each.name === name)
  return found === undefined
    ? Effect.fail(unknown(`no queue ${name} is configured on ${broker}`))
    : Effect.succeed({ connection, queue: found })
}

/** Asks the broker about itself and about the queue. */
const asked = ({ timeout }: Dependencies, connection: Connection, { name, retry }: Queue) =>
  connection
    .use((broker) =>
      Effect.map(QueueStatus.of(broker, { queue: name, retry }), (status) => ({
        status,
        capabilities: broker.capabilities,
        trouble: [...new Set((status.missing ?? []).map(({ message }) => connection.mask(message)))]
      }))
    )
    .pipe(
      Deadline.within(connection.name, timeout),
      Effect.catchTag("Trouble", ({ message }) =>
        Effect.succeed({ status: undefined, capabilities: undefined, trouble: [message] })
      )
    )

const backoffs = [...ConsumerBackoff.forms, "off"] as const

/** Returns the outage that the fields describe. */
const questionOf = (fields: URLSearchParams): Effect.Effect<Asked, Refusal> =>
  Effect.gen(function* () {
    const minutes = yield* numberOf(fields, "outage", "decimal", 0.01, 1440)
    const rate = yield* numberOf(fields, "rate", "decimal", 0.001, 10_000)
    const failing = yield* numberOf(fields, "failing", "decimal", 0.1, 100)
    const handlerTime = yield* numberOf(fields, "handler", "whole", 1, 3_600_000)
    const concurrency = yield* numberOf(fields, "concurrency", "whole", 1, 100_000)
    const choice = fields.get("backoff") ?? ""
    const consumerBackoff = backoffs.find((each) => each === choice)
    if (consumerBackoff === undefined && choice !== "") {
      return yield* wrong(`backoff must be one of ${backoffs.join(", ")}, or nothing`, "Nothing was done")
    }
    return {
      outage: minutes === undefined ? usual.outage : minutes * 60_000,
      rate: rate ?? usual.rate,
      share: failing === undefined ? usual.share : failing / 100,
      handlerTime: handlerTime ?? usual.handlerTime,
      concurrency,
      consumerBackoff
    }
  })

/** Runs work until the client disconnects. */
const whileHere = <A, E>(signal: AbortSignal, work: Effect.Effect<A, E>): Effect.Effect<A, E | Refusal> => {
  const gone = Effect.callback<never, Refusal>((resume) => {
    const end = () =>
      resume(Effect.fail(new Refusal({ status: 503, detail: "the client has disconnected", remedy: "Try again" })))
    if (signal.aborted) return end()
    signal.addEventListener("abort", end)
    return Effect.sync(() => signal.removeEventListener("abort", end))
  })
  return Effect.raceFirst(work, gone)
}

/**
 * Shows a queue: its numbers, its configuration, its plan compared with the broker, and on request a simulated outage.
 */
export const queueRoute: Route = {
  method: "GET",
  needs: "view",
  answer: ({ fields, signal, visit }, dependencies) =>
    Effect.gen(function* () {
      const { connection, queue: own } = yield* queueOf(fields, dependencies)
      const question = yield* questionOf(fields)
      const { compare, simulate } = dependencies
      const [told, comparison] = yield* Effect.all([asked(dependencies, connection, own), compare(connection, own)], {
        concurrency: "unbounded"
      })
      const answer = fields.has("outage")
        ? yield* whileHere(signal, simulate(own.options ?? { retry: own.retry }, { ...question, seed: 1 }))
        : undefined
      return {
        page: queue(visit, {
          ...told,
          place: { broker: connection.name, queue: own.name },
          queue: own,
          comparison,
          asked: question,
          answer
        })
      }
    })
}
