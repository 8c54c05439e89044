/**
 * Delayed messages, such as retries in backoff: list, count and remove them.
 *
 * Not every broker can show them: see `capabilities.delayedMessages`.
 */
import { Broker, BrokerError, Delivery, type Message, RetryPolicy } from "@requeue/core"
import { AsyncContext, Metadata, OptionKind, OptionNames, OwnBytes } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Filter from "../internal/Filter.ts"
import * as Removal from "../internal/Removal.ts"
import { browse, type Browsed, type Purged } from "./internal/browse.ts"

export type { Browsed, Purged } from "./internal/browse.ts"

/** A copy of a delayed message. Changes to the copy do not change the message. */
export interface DelayedMessage {
  /** The message's id. */
  readonly id: string
  /** The bytes as they were published. */
  readonly body: Uint8Array
  readonly headers: Message.Headers
  /**
   * The broker's native facts of this message. Read them with the adapter's module, for example
   * `RabbitMqNative.of(message)`.
   */
  readonly native: Message.Native
  /** When the message was first published, in milliseconds since the epoch; `undefined` if that is unknown. */
  readonly firstPublished: number | undefined
  /** The number of the message's next attempt. */
  readonly attempts: number
  /**
   * When the message is due, in milliseconds since the epoch, by its sender's clock; `undefined` if that is unknown.
   */
  readonly due: number | undefined
  /** The last failed attempts, newest last. */
  readonly history: ReadonlyArray<Metadata.Attempt>
}

/** The messages that were found. */
export interface Listing extends Browsed {
  /** The messages that are due first, up to `limit`. */
  readonly messages: ReadonlyArray<DelayedMessage>
  /** The number of all messages that the filter selects. */
  readonly selected: number
}

/** Options of `count`. */
export interface CountOptions {
  /** Selects a message if it returns `true`. It must return at once. Default: all messages. */
  readonly filter?: ((message: DelayedMessage) => boolean) | undefined
}

/** Options of `list`. */
export interface ListOptions extends CountOptions {
  /** The largest number of messages to list, at least 1. Default: 100. */
  readonly limit?: number | undefined
}

/** Options of `purge`: one of `all` and `filter`. */
export type PurgeOptions = (
  | {
      /** `true` for all delayed messages of the queue. */
      readonly all: true
      readonly filter?: undefined
    }
  | {
      /** Selects a message for removal if it returns `true`. It must return at once. */
      readonly filter: (message: DelayedMessage) => boolean
      readonly all?: undefined
    }
) & {
  /** Whether to count the selected messages, and remove none. Default: false. */
  readonly dryRun?: boolean | undefined
  /**
   * A signal that ends the purge: it selects no further message, and returns the number of removed messages. Default: no
   * signal.
   */
  readonly signal?: AbortSignal | undefined
}

/**
 * The calls on the delayed messages of one queue. Each call fails with `Unsupported` if the broker cannot show delayed
 * messages.
 */
export interface DelayedMessages {
  readonly queue: string
  /**
   * Lists delayed messages, the soonest due first.
   *
   * @throws RangeError when an option is unknown, of another kind or out of its range
   */
  readonly list: (options?: ListOptions) => Effect.Effect<Listing, BrokerError.BrokerError>
  /**
   * Counts delayed messages. In the result, `selected` is the number that the filter selects.
   *
   * @throws RangeError when an option is unknown or of another kind
   */
  readonly count: (options?: CountOptions) => Effect.Effect<Omit<Listing, "messages">, BrokerError.BrokerError>
  /**
   * Removes delayed messages for good. A message that becomes due meanwhile is either removed or delivered. If the call
   * fails after it has selected messages, the error has their number: these may be gone. If the filter throws, the call
   * ends, and the error has the number of removed messages.
   *
   * @throws RangeError when an option is unknown or of another kind, or unless one of `all` and `filter` is given
   */
  readonly purge: (options: PurgeOptions) => Effect.Effect<Purged, BrokerError.BrokerError>
}

/** Options of {@link make}. */
export interface Options {
  /**
   * The retry policy of the queue's consumers, because some brokers keep the messages of each delay in a different place.
   * Default: the default policy.
   */
  readonly retry?: RetryPolicy.RetryPolicy | RetryPolicy.Options | undefined
}

/** The kinds of {@link Options}. */
export const kinds: OptionNames.Of<Options> = { retry: true }

const countKinds: OptionNames.Of<CountOptions> = { filter: OptionKind.callback }
const listKinds: OptionNames.Of<ListOptions> = { ...countKinds, limit: OptionKind.whole(1) }
const purgeKinds: OptionNames.Of<PurgeOptions> = {
  ...Removal.kinds,
  dryRun: OptionKind.flag,
  signal: OptionKind.signal
}

/**
 * Returns functions that check the options of each call. Each returns an error, or `undefined` if the options are valid.
 */
export const refusals = (queue: string) => ({
  list: (options: ListOptions = {}) => OptionNames.refusal("DelayedMessages.list", options, listKinds, queue),
  count: (options: CountOptions = {}) => OptionNames.refusal("DelayedMessages.count", options, countKinds, queue),
  purge: (options: PurgeOptions) =>
    Removal.refusal({ call: "DelayedMessages.purge", queue, things: "delayed messages" }, options, purgeKinds)
})

const standardLimit = 100

const toMessage = ({ delivery, due }: Broker.BrowsedMessage): DelayedMessage => {
  let body: Uint8Array | undefined
  return {
    id: delivery.metadata.id,
    get body() {
      return (body ??= OwnBytes.copy(delivery.body))
    },
    headers: delivery.headers,
    get native() {
      return Delivery.nativeOf(delivery)
    },
    firstPublished: Metadata.publishedAt(delivery.metadata),
    attempts: delivery.attempts,
    due,
    history: delivery.metadata.history.map((attempt) => ({ ...attempt }))
  }
}

const soonest = (a: DelayedMessage, b: DelayedMessage): number =>
  (a.due ?? Number.POSITIVE_INFINITY) - (b.due ?? Number.POSITIVE_INFINITY) ||
  (a.firstPublished ?? 0) - (b.firstPublished ?? 0)

/** Returns the error of a purge that failed after it had selected messages. */
const inDoubt = (error: BrokerError.BrokerError, selected: number): BrokerError.BrokerError => {
  const { broker, cause, entries, operation, queue, reason, remedy } = error
  const detail = `${error.detail}; ${selected} delayed messages had been selected by then, and may be gone`
  return new BrokerError.BrokerError({ broker, cause, entries, operation, queue, reason, remedy, detail })
}

const remove = (
  broker: Broker.Service,
  queue: string,
  retry: RetryPolicy.RetryPolicy,
  { dryRun = false, filter, signal }: PurgeOptions
): Effect.Effect<Purged, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    let [selected, left] = [0, 0]
    const isMeant = (message: Broker.BrowsedMessage): boolean => {
      if (signal?.aborted === true) {
        left++
        return false
      }
      const isSelected = Filter.selects(filter, () => toMessage(message))
      if (isSelected) selected++
      return isSelected && !dryRun
    }
    return browse(broker, queue, retry, isMeant).pipe(
      Effect.map(({ isWhole, browsed, removed }) => ({
        removed: dryRun ? selected : removed,
        browsed: browsed - left,
        isWhole: isWhole && left === 0
      })),
      Effect.mapError((error) => (selected === 0 || dryRun ? error : inDoubt(error, selected)))
    )
  })

/**
 * Returns the calls on the delayed messages of a queue. Throws RangeError for an option that is unknown.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Producer } from "@requeue/core"
 * import { DelayedMessages } from "@requeue/operations"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const orders = yield* Producer.make("orders")
 *   yield* orders.send({ sku: "tea" }, { id: "order-1", delay: "1 hour" })
 *   const delayed = yield* DelayedMessages.make("orders")
 *   return yield* delayed.purge({ filter: ({ id }) => id === "order-1" })
 * })
 * const purged = await Effect.runPromise(Effect.scoped(Effect.provide(program, MemoryBroker.layer())))
 * purged.removed // => 1
 * ```
 */
export const make = (queue: string, options: Options = {}): Effect.Effect<DelayedMessages, never, Broker.Broker> => {
  OptionNames.check("DelayedMessages.make", options, kinds, queue)
  return Effect.map(Broker.Broker, (broker) => {
    const retry = RetryPolicy.from(options.retry ?? {})
    const refused = refusals(queue)
    const find = ({ filter, limit = standardLimit }: ListOptions) =>
      Effect.suspend(() => {
        let found: Array<DelayedMessage> = []
        let selected = 0
        const keep = (message: Broker.BrowsedMessage): false => {
          if (!Filter.selects(filter, () => toMessage(message))) return false
          selected++
          found.push(toMessage(message))
          if (found.length > 2 * limit) found = found.toSorted(soonest).slice(0, limit)
          return false
        }
        return Effect.map(browse(broker, queue, retry, keep), ({ isWhole, browsed }): Listing => {
          const messages = found.toSorted(soonest).slice(0, limit)
          return { messages, selected, browsed, isWhole }
        })
      })
    /** Makes a call whose functions run in the async context of its caller, with a copy of its options. */
    const calling = <O extends object, A, E>(
      refusal: RangeError | undefined,
      given: O,
      call: (options: O) => Effect.Effect<A, E>
    ) =>
      OptionNames.orDie(refusal, () => {
        const own = { ...given }
        return Effect.suspend(() => call(AsyncContext.bound(own)))
      })
    return {
      queue,
      list: (given = {}) => calling(refused.list(given), given, find),
      count: (given = {}) =>
        calling(refused.count(given), given, (own) =>
          Effect.map(find({ ...own, limit: 1 }), ({ isWhole, browsed, selected }) => ({ selected, browsed, isWhole }))
        ),
      purge: (given) => calling(refused.purge(given), given, (own) => remove(broker, queue, retry, own))
    }
  })
}
