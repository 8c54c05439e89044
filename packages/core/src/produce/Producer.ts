/** Producers send messages to a queue, and wait until the broker has confirmed each. */
import * as Effect from "effect/Effect"
import type { Broker } from "../port/Broker.ts"
import * as Checks from "./internal/checks.ts"
import type { ConfigurationError } from "../options/ConfigurationError.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as Unchecked from "./internal/producer.ts"
import { kinds, type Options } from "./internal/limits.ts"
import type { Producer } from "./internal/producer.ts"
import type * as QueueDefinition from "../message/QueueDefinition.ts"

export type { BatchEntry, BatchOptions, SendOptions } from "./internal/checks.ts"
export type { Options } from "./internal/limits.ts"
export type { Producer, SendError } from "./internal/producer.ts"

/**
 * Makes a producer for a queue. Fails if the `delay` of the queue's definition is longer than the broker supports.
 *
 * `send` and `sendBatch` die with a RangeError if an option is unknown or of the wrong kind.
 *
 * @throws RangeError when an option is unknown, of the wrong kind or out of range
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Producer } from "@requeue/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const orders = yield* Producer.make("orders")
 *   return yield* orders.send({ total: 9.5 }, { id: "o1", delay: "10 seconds" })
 * })
 * await Effect.runPromise(Effect.provide(program, MemoryBroker.layer())) // => "o1"
 * ```
 */
export const make = <A>(
  queue: QueueDefinition.Input<unknown, A>,
  options: Options = {}
): Effect.Effect<Producer<A>, ConfigurationError, Broker> =>
  OptionNames.orDie(OptionNames.refusal("Producer.make", options, kinds, queue), () =>
    Effect.map(Unchecked.make(queue, options), (producer) => ({
      queue: producer.queue,
      ...checked(producer.queue, producer),
      within: (transaction) => checked(producer.queue, producer.within(transaction))
    }))
  )

type Sends<A> = Pick<Producer<A>, "send" | "sendBatch">

const checked = <A>(queue: string, { send, sendBatch }: Sends<A>): Sends<A> => ({
  send: (body, options) => OptionNames.orDie(Checks.send("Producer.send", queue, options), () => send(body, options)),
  sendBatch: (entries, options) =>
    OptionNames.orDie(Checks.sendBatch("Producer.sendBatch", queue, entries, options), () =>
      sendBatch(entries, options)
    )
})
