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

/** A copy of a delayed message. Writing into it changes no message. */
export interface DelayedMessage {
  /** The message's id. */
  readonly id: string
  /** The bytes as they were published. */
  readonly body: Uint8Array
  readonly headers: Message.Headers
  /** The broker's own facts of this message, as of any delivery. */
  readonly native: Message.Native
  /** When the message was first published, in milliseconds since the epoch; `undefined` if unknown. */
  readonly firstPublished: number | undefined
  /** The number of its next attempt. */
  readonly attempts: number
  /** When it is due, in milliseconds since the epoch, by its sender's clock; `undefined` if unknown. */
  readonly due: number | undefined
  /** The last failed attempts, newest last. */
  readonly history: ReadonlyArray<Metadata.Attempt>
}

/** The messages that were found. */
export interface Listing extends Browsed {
  /** Those that are due first, up to `limit`. */
  readonly messages: ReadonlyArray<DelayedMessage>
  /** The number of all that the filter selects. */
  readonly selected: number
}

/** Options of `count`. */
export interface CountOptions {
  /** Selects the messages: those for which it returns `true`. It must return at once. Default: all. */
  readonly filter?: ((message: DelayedMessage) => boolean) | undefined
}

/** Options of `list`. */
export interface ListOptions extends CountOptions {
  /** The most messages to list, at least 1. Default: 100. */
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
      /** Selects the messages to remove: those for which it returns `true`. It must return at once. */
      readonly filter: (message: DelayedMessage) => boolean
      readonly all?: undefined
    }
) & {
  /** Whether to count only, and remove nothing. Default: false. */
  readonly dryRun?: boolean | undefined
  /** Ends the removal: it selects no further message, and returns the number of those removed. Default: it is never stopped. */
  readonly signal?: AbortSignal | undefined
}

/** The delayed messages of one queue. Each call fails with `Unsupported` if the broker cannot show them. */
export interface DelayedMessages {
  readonly queue: string
  /**
   * Lists delayed messages, the soonest due first.
   *
   * @throws RangeError when an option is unknown, of another kind or out of its range
   */
  readonly list: (options?: ListOptions) => Effect.Effect<Listing, BrokerError.BrokerError>
  /**
   * Counts delayed messages: `selected` of the result.
   *
   * @throws RangeError when an option is unknown or of another kind
   */
  readonly count: (options?: CountOptions) => Effect.Effect<Omit<Listing, "messages">, BrokerError.BrokerError>
  /**
   * Removes delayed messages for good. One that becomes due meanwhile is either removed or delivered. If it fails after
   * some were selected, its error has their number: these may be gone. A filter that throws ends it; the error has the number removed.
   *
   * @throws RangeError when an option is unknown or of another kind, or unless one of `all` and `filter` is given
   */
  readonly purge: (options: PurgeOptions) => Effect.Effect<Purged, BrokerError.BrokerError>
}

/** The queue's consumers. */
export interface Options {
  /** The retry policy of its consumers, for brokers with a place for each of its delays. Default: the default policy. */
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

/** The error of the options of each call; `undefined` if there is none. */
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

/** The error of a removal that failed after it had selected messages. */
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
 * The delayed messages of a queue. Throws RangeError for an option that is unknown.
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
    /** A call whose functions run in its async context, with a copy of its options. */
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
