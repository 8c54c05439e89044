/** Sends messages on the way that their plan names, declaring what the way needs. */
import type { BrokerError } from "@requeue/core/BrokerError"
import { BrokerError as Refusal } from "@requeue/core/BrokerError"
import type { Outgoing } from "@requeue/core/Outgoing"
import * as Effect from "effect/Effect"
import type { Settings } from "../RabbitMqOptions.ts"
import * as Plan from "../RabbitMqPlan.ts"
import type { Properties } from "./client.ts"
import type { Declarer } from "./declarer.ts"
import * as Names from "./names.ts"
import type { Publisher } from "./publisher.ts"
import { direct, toPublication } from "./toPublication.ts"

/** A message, the plan of its queue, and the delivery that it is a copy of. */
export interface Item {
  readonly message: Outgoing
  readonly plan: Plan.Plan
  readonly original?: Properties | undefined
}

export interface Sender {
  /** Succeeds when all are confirmed; else fails with the first error. */
  readonly send: (items: ReadonlyArray<Item>) => Effect.Effect<void, BrokerError>
}

const tooLong = (queue: string): BrokerError =>
  new Refusal({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Unsupported",
    detail: `the name has ${Buffer.byteLength(queue)} bytes, AMQP carries at most ${Names.limit}`,
    remedy: "Use a shorter name"
  })

const tooLarge = ({ body, queue }: Outgoing, limit: number): BrokerError =>
  new Refusal({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "BodyTooLarge",
    detail: `the body has ${body.length} bytes, the limit is ${limit}`,
    remedy: "Send a smaller body, or raise max_message_size of the server and maxBodySize here"
  })

export const make = (env: {
  readonly settings: Settings
  readonly declarer: Declarer
  readonly publisher: Publisher
  readonly maxBodySize: number
  readonly uniqueName: () => string
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}): Sender => {
  const { declarer, maxBodySize, publisher, settings } = env
  const own = Names.own(settings)

  const refusal = ({ message, original }: Item): BrokerError | undefined => {
    if (Buffer.byteLength(message.queue) > Names.limit) return tooLong(message.queue)
    // What came from the server may go back to it.
    return original === undefined && message.body.length > maxBodySize ? tooLarge(message, maxBodySize) : undefined
  }

  const needs = ({ message, plan }: Item) =>
    message.delay > 0
      ? [...Plan.home(message.queue, settings), ...plan.route(message.delay).objects]
      : Plan.home(message.queue, settings)

  /** What declaring took is not waited for once more. */
  const rest = (delay: number, started: number): number => {
    const spent = Math.floor(env.elapsed() - started)
    return spent < settings.resolution ? delay : Math.max(1, delay - spent)
  }

  const publication = ({ message, original, plan }: Item, started: number) => {
    const way = message.delay > 0 ? plan.route(rest(message.delay, started)) : direct(message.queue)
    return toPublication(message, way, { copy: env.uniqueName(), own }, original)
  }

  const attempt = (items: ReadonlyArray<Item>, started: number) =>
    Effect.gen(function* () {
      for (const [queue, first] of new Map(
        items.map((item) => [`${item.message.queue} ${item.message.delay}`, item])
      )) {
        yield* declarer.ensure(needs(first), queue.split(" ")[0]!)
      }
      return yield* publisher.send(items.map((item) => publication(item, started)))
    })

  return {
    send: (items) =>
      Effect.gen(function* () {
        for (const item of items) {
          const error = refusal(item)
          if (error !== undefined) return yield* error
        }
        const started = env.elapsed()
        const answers = yield* attempt(items, started)
        // Somebody has deleted what we declared: it is declared again, once.
        const again = items.filter((_, index) => answers[index]?.reason === "Unroutable")
        const other = answers.find((error) => error !== undefined && error.reason !== "Unroutable")
        if (other !== undefined) return yield* other
        if (again.length === 0) return
        for (const item of again) declarer.doubt(needs(item))
        const second = yield* attempt(again, started)
        const failed = second.find((error) => error !== undefined)
        if (failed !== undefined) return yield* failed
      })
  }
}
