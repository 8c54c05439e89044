/**
 * The relay of an outbox: a consumer of the store's queue `requeue.outbox` that publishes each message on the broker.
 *
 * - A message leaves the outbox after the broker has confirmed it. If the confirmation is lost, the message is published again
 *   with the same id: the inbox of its consumer recognises it.
 * - While the broker cannot be reached, the messages wait, and no attempt is used up.
 * - A message that the broker refuses, such as one that is too large, is retried under the policy, and is then a dead letter in
 *   `requeue.outbox.dlq` of the store.
 *
 * Several relays of one outbox share its messages.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Consumer from "../consume/Consumer.ts"
import type * as ConsumerOptions from "../consume/ConsumerOptions.ts"
import type { Batch, Received } from "../message/Handler.ts"
import * as Codec from "../message/Codec.ts"
import type { Outgoing } from "../message/Outgoing.ts"
import * as QueueDefinition from "../message/QueueDefinition.ts"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import * as Backoff from "../policy/Backoff.ts"
import * as BatchPolicy from "../policy/BatchPolicy.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"
import { Broker, fateOf, type Service } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import type { Capabilities } from "../port/Capabilities.ts"
import * as Feasibility from "../port/Feasibility.ts"
import { outbox, outboxOf } from "../port/Inbox.ts"
import * as Log from "../port/Log.ts"
import * as Reconnect from "../runtime/Reconnect.ts"
import * as Outbox from "./internal/outbox.ts"

/** The queue of the store that is the outbox of brokers without a namespace. */
export const queue = outbox

/** Returns the outbox of the brokers with a `storeNamespace`. Default: {@link queue}. */
export const queueOf = outboxOf

/** The failure of a message in the outbox that does not name its queue. It is a dead letter at once. */
export class NotAddressed extends Error {
  override readonly name = "NotAddressed"
  readonly permanent = true
}

/** The failure of a message for a broker of another kind, which shares the outbox. Its own relay can still get it. */
export class ForAnotherBroker extends Error {
  override readonly name = "ForAnotherBroker"
}

/** Between two tries to publish while the broker cannot be reached: 0.1 to 10 s. */
const untilReached = Schedule.jittered(
  Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("10 seconds")])
)

/** The defaults of a relay, where they differ from those of a consumer. */
export const defaults = {
  batch: BatchPolicy.make({ maxBatchSize: 100, maxBatchTimeout: 0 }),
  // While one batch is claimed, others are published and acked.
  concurrency: 4,
  retry: RetryPolicy.make({
    maxRetries: 10,
    backoff: Backoff.exponential("1 second", { max: "5 minutes", jitter: "full" })
  }),
  handlerTimeout: "unlimited"
} as const

/** A message of the outbox, and what to publish. */
type Entry = readonly [Received<Uint8Array>, Outgoing]

/** Publishes messages. `onFailure` logs the failures of an outage. */
interface Publisher extends Pick<Service, "capabilities" | "publish"> {
  readonly onFailure: (error: BrokerError) => Effect.Effect<void>
}

const publisher = ({ capabilities, publish }: Service): Publisher => {
  let failures = 0
  const { broker } = capabilities
  return {
    capabilities,
    publish: (messages) => Effect.tap(publish(messages), () => Effect.sync(() => (failures = 0))),
    onFailure: ({ message }) =>
      Effect.suspend(() => {
        const annotations = { broker, failures, errorMessage: message }
        return Reconnect.isTold(failures++)
          ? Log.warning("not publishing: messages wait in the outbox", annotations)
          : Effect.void
      })
  }
}

const isRefusal = (error: BrokerError): boolean => fateOf(error) === "rejected"

type Refused = readonly [Received<Uint8Array>, BrokerError]

/**
 * Publishes entries, and returns those that the broker refuses. Waits until it can be reached. One message can make the broker refuse
 * others, so a message counts as refused only if it was published alone.
 */
const forward = (publisher: Publisher, entries: ReadonlyArray<Entry>): Effect.Effect<ReadonlyArray<Refused>> => {
  const { onFailure, publish } = publisher
  const refused: Array<Refused> = []
  let left = entries
  const failedWith = (error: BrokerError) =>
    Effect.gen(function* () {
      const tried = left
      const failed = tried.flatMap((entry, index) => {
        const { error: own = error, status = "unknown" } = error.entries?.[index] ?? {}
        return status === "sent" ? [] : [[entry, own] as const]
      })
      left = failed.flatMap(([entry, own]) => (isRefusal(own) ? [] : [entry]))
      const refusals = failed.filter(([, own]) => isRefusal(own))
      if (tried.length === 1) refused.push(...refusals.map(([[message], own]) => [message, own] as const))
      else {
        const alone = Effect.forEach(refusals, ([entry]) => forward(publisher, [entry]), { concurrency: "unbounded" })
        refused.push(...(yield* alone).flat())
      }
      if (left.length > 0) yield* onFailure(error)
    })
  const attempt = Effect.suspend(() => Effect.tapError(publish(left.map(([, outgoing]) => outgoing)), failedWith))
  return attempt.pipe(
    Effect.retry({ schedule: untilReached, while: () => left.length > 0 }),
    Effect.ignore,
    Effect.as(refused)
  )
}

/** Returns why a message cannot be published; `undefined` if it can. */
const failureOf = (addressed: Outbox.Addressed | undefined, capabilities: Capabilities): Error | undefined => {
  if (addressed === undefined)
    return new NotAddressed("the message has no valid header requeue-outbox with the name of a queue")
  if (addressed.broker === capabilities.broker) return Feasibility.refusalOf(addressed.outgoing, capabilities)
  return new ForAnotherBroker(
    `the message is for ${addressed.broker}, and this relay publishes on ${capabilities.broker}. Give each broker of the store another ` +
      "storeNamespace"
  )
}

const relay =
  (publisher: Publisher) =>
  ({ messages }: Batch<Uint8Array>): Effect.Effect<void> => {
    const { capabilities } = publisher
    const entries = messages.flatMap((message) => {
      const addressed = Outbox.fromOutbox(message, capabilities.broker)
      const failure = failureOf(addressed, capabilities)
      if (addressed !== undefined && failure === undefined) return [[message, addressed.outgoing] as const]
      message.fail(failure)
      return []
    })
    if (entries.length === 0) return Effect.void
    return Effect.map(forward(publisher, entries), (refused) => {
      for (const [message, error] of refused) message.fail(error)
    })
  }

const withoutStore = ({ capabilities: { broker, transactions } }: Service): ConfigurationError =>
  new ConfigurationError({
    field: "store",
    detail: `the broker ${broker} has no store, so it has no outbox`,
    remedy:
      transactions === true
        ? "Start no relay: what is sent in a transaction is in its queue when that is committed"
        : 'Connect with a store, such as connect(url, { store: "postgres://…" })'
  })

/**
 * Starts a relay, which works until its scope closes. It has the options of a consumer; by default it publishes four batches of up to
 * 100 messages at once, and retries a refused one 10 times, with up to 5 minutes in between.
 *
 * Fails with `ConfigurationError` if the broker was made without `Store.layer`.
 *
 * @throws RangeError when an option is out of range
 *
 * @example
 * ```ts
 * import { MemoryBroker, MemoryTransaction } from "@requeue/adapter-memory"
 * import { Consumer, Producer, Relay, Store } from "@requeue/core"
 * import { Deferred, Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const paid = yield* Deferred.make<string>()
 *   const receipts = yield* Producer.make("receipts")
 *   yield* MemoryTransaction.runEffect((transaction) => receipts.within(transaction).send({ of: "p1" }))
 *   yield* Relay.start()
 *   yield* Consumer.start("receipts", {}, ({ body }) => Deferred.succeed(paid, body.of))
 *   return yield* Deferred.await(paid)
 * }).pipe(Effect.scoped, Effect.provide(Store.layer(MemoryBroker.layer(), MemoryBroker.layer())))
 *
 * await Effect.runPromise(program) // => "p1"
 * ```
 */
export const start = (
  options: ConsumerOptions.Options = {}
): Effect.Effect<Consumer.Consumer, Consumer.StartError | ConfigurationError, Broker | Scope.Scope> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const { outbox = queue, store } = broker
    if (store === undefined) return yield* Effect.fail(withoutStore(broker))
    const definition = { ...QueueDefinition.make(outbox, { codec: Codec.bytes }), options: defaults }
    const started = Consumer.startBatch(definition, options, relay(publisher(broker)))
    return yield* Effect.provideService(started, Broker, store)
  })
