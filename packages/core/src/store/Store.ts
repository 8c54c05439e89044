/**
 * A database next to a broker: with it, a handler's effects happen once although its queue is on a broker without transactions.
 *
 * - `message.within(transaction)` records the message in the database's *inbox*. If the message is delivered again, the call fails
 *   with `AlreadyDone`, and Requeue acks the message.
 * - `requeue.within(transaction).send(...)` writes the message to the database's *outbox*, a queue. A {@link Relay} publishes it
 *   on the broker.
 *
 * When to use: with RabbitMQ, NSQ or SQS, if handlers write to PostgreSQL or SQLite. If the queues are in that database too, you need
 * no store.
 *
 * Only effects in the database happen once. A call of another service can happen twice: give it an idempotency key.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Delay from "../message/Delay.ts"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import { Broker, type Service } from "../port/Broker.ts"
import { type Inbox as InboxPort, outboxOf } from "../port/Inbox.ts"
import * as KnownQueues from "../port/KnownQueues.ts"
import * as Inbox from "./internal/inbox.ts"
import * as Outbox from "./internal/outbox.ts"

/** The options of a store. */
export interface Options {
  /**
   * How long the inbox remembers a message: longer than its retries, and than the time until an operator redrives its dead letter. Range: 1 hour or more; a number means milliseconds. Default:
   * 30 days.
   */
  readonly inboxRetention?: Delay.DurationInput | undefined
  /**
   * Separates inbox and outbox from those of other brokers with the same store. All programs of a broker need the same namespace.
   * Range: 1 to 64 letters, digits, `-` and `_`. Default: none.
   */
  readonly storeNamespace?: string | undefined
}

/** The kind of each option. */
export const kinds = {
  inboxRetention: Delay.kind(60 * 60_000, Number.POSITIVE_INFINITY),
  storeNamespace: OptionKind.matching("1 to 64 letters, digits, - and _", /^[\w-]{1,64}$/)
} satisfies OptionNames.Of<Options>

const defaultRetention = 30 * 24 * 60 * 60_000

/**
 * How often the inbox is cleaned, and the pause after each step, in milliseconds; and the most messages that one step forgets.
 * Millions of messages take minutes, in which programs' transactions need the database.
 */
const cleaning = { every: 60_000, pause: 50, limit: 1000 }

const withoutInbox = ({ capabilities }: Service): ConfigurationError =>
  new ConfigurationError({
    field: "store",
    detail: `the broker ${capabilities.broker} has no inbox`,
    remedy: "Use a database as the store, such as postgres://… or sqlite:./queue.db"
  })

/** Forgets what is older than the retention. An unreachable database only delays it. */
const clean = (inbox: InboxPort, retention: number): Effect.Effect<void> =>
  inbox
    .prune(retention, cleaning.limit)
    .pipe(
      Effect.repeat({ until: (count) => count < cleaning.limit, schedule: Schedule.spaced(cleaning.pause) }),
      Effect.ignore,
      Effect.repeat(Schedule.spaced(cleaning.every))
    )

/**
 * Makes a broker with a store next to it. It has the capabilities `transactions` and `inbox`; all else is as before.
 *
 * Fails with `ConfigurationError` if the store has no inbox.
 *
 * @throws RangeError when an option is unknown or out of range
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Broker, Store } from "@requeue/core"
 * import * as Effect from "effect/Effect"
 *
 * const layer = Store.layer(MemoryBroker.layer(), MemoryBroker.layer(), { inboxRetention: "60 days" })
 * const capabilities = Effect.map(Broker.Broker, (broker) => broker.capabilities)
 * await Effect.runPromise(Effect.provide(Effect.map(capabilities, ({ inbox }) => inbox), layer)) // => true
 * ```
 */
export const layer = <E, E2>(
  broker: Layer.Layer<Broker, E>,
  store: Layer.Layer<Broker, E2>,
  options: Options = {}
): Layer.Layer<Broker, E | E2 | ConfigurationError> => {
  OptionNames.check("Store.layer", options, kinds)
  const { inboxRetention = defaultRetention, storeNamespace } = options
  return Layer.effect(
    Broker,
    Effect.gen(function* () {
      const ready = yield* Effect.all([Layer.build(broker), Layer.build(store)], { concurrency: 2 })
      const [alone, database] = ready.map((context) => Context.get(context, Broker))
      return yield* join(alone!, database!, Delay.toMillis(inboxRetention), storeNamespace)
    })
  )
}

const join = (
  broker: Service,
  store: Service,
  retention: number,
  namespace: string | undefined
): Effect.Effect<Service, ConfigurationError, Scope.Scope> =>
  Effect.gen(function* () {
    const { publishWithin } = store
    if (store.inbox === undefined || publishWithin === undefined) return yield* Effect.fail(withoutInbox(store))
    const inbox = Inbox.inNamespace(store.inbox, namespace)
    const used = Deferred.makeUnsafe<void>()
    yield* Effect.forkScoped(Effect.andThen(Deferred.await(used), clean(inbox, retention)))
    const onUse = () => Deferred.doneUnsafe(used, Exit.void)
    return sharing({ store, publishWithin, inbox, outbox: outboxOf(namespace), onUse })(broker)
  })

/** A store as the brokers of a namespace use it. */
interface Shared extends Pick<Inbox.Dependencies, "inbox" | "onUse"> {
  readonly store: Service
  readonly publishWithin: NonNullable<Service["publishWithin"]>
  readonly outbox: string
}

const sharing = ({ inbox, onUse, outbox, publishWithin, store }: Shared) => {
  const beside = (broker: Service): Service => {
    const name = broker.capabilities.broker
    const waiting = { broker: name, outbox }
    const joined: Service = {
      ...broker,
      store,
      outbox,
      beside,
      capabilities: { ...broker.capabilities, transactions: true, inbox: true },
      publishWithin: (transaction, messages) => {
        const refused = messages
          .map((message) => Outbox.refusal(message, waiting, store.capabilities))
          .find((error) => error !== undefined)
        if (refused !== undefined) return Effect.fail(refused)
        return publishWithin(
          transaction,
          messages.map((message) => Outbox.toOutbox(message, waiting))
        )
      },
      subscribe: (options) =>
        Effect.map(broker.subscribe(options), (subscription) => ({
          ...subscription,
          ...Inbox.over(subscription, { broker: name, queue: options.queue, inbox, onUse })
        }))
    }
    KnownQueues.share(broker, joined)
    return joined
  }
  return beside
}
