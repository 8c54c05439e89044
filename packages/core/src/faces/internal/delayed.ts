/** The delayed messages of a queue, for programs without Effect. */
import type * as Effect from "effect/Effect"
import * as DelayedMessages from "../../delayed/DelayedMessages.ts"
import * as OptionKind from "../../options/OptionKind.ts"
import * as OptionNames from "../../options/OptionNames.ts"
import type { Broker } from "../../port/Broker.ts"

/** The messages of a queue that wait for their delay. Each call rejects with `Unsupported` where the broker cannot show them. */
export interface DelayedQueue {
  /** Lists those that `filter` selects, the soonest due first. */
  readonly list: (options?: DelayedMessages.ListOptions) => Promise<DelayedMessages.Listing>
  /** Counts those that `filter` selects: `selected` of the answer. */
  readonly count: (options?: DelayedMessages.CountOptions) => Promise<Omit<DelayedMessages.Listing, "messages">>
  /** Removes those that `filter` selects for good, or with `{ all: true }` all. */
  readonly purge: (options: DelayedMessages.PurgeOptions) => Promise<DelayedMessages.Purged>
}

/** Opens the delayed messages of queues. Throws RangeError for a queue that is no text, and for unknown options. */
export const opener =
  (run: <A, E>(effect: Effect.Effect<A, E, Broker>) => Promise<A>) =>
  (queue: string, options: DelayedMessages.Options = {}): DelayedQueue => {
    OptionNames.orThrow(OptionNames.argument("requeue.delayed", "queue", queue, OptionKind.text))
    OptionNames.check("requeue.delayed", options, DelayedMessages.kinds, queue)
    const messages = () => run(DelayedMessages.make(queue, options))
    return {
      list: async (listOptions) => {
        OptionNames.orThrow(DelayedMessages.refusal.list("delayed.list", queue, listOptions))
        return run((await messages()).list(listOptions))
      },
      count: async (countOptions) => {
        OptionNames.orThrow(DelayedMessages.refusal.count("delayed.count", queue, countOptions))
        return run((await messages()).count(countOptions))
      },
      purge: async (purgeOptions) => {
        OptionNames.orThrow(DelayedMessages.refusal.purge("delayed.purge", queue, purgeOptions))
        return run((await messages()).purge(purgeOptions))
      }
    }
  }
