/**
 * Counts the messages in the queues that letters were redriven to.
 *
 * If queues keep delayed messages in a common place, the count is an upper bound. When a queue has no other messages left,
 * this browses the delayed messages for letters of this redrive. Browsing holds messages for a moment, so this counts
 * first.
 */
import { type Broker, type BrokerError, RetryPolicy } from "@requeue/core"
import { type Metadata } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { browse } from "../../delayed/internal/browse.ts"

/** The messages in the queues that were redriven to. */
export interface Waiting {
  /**
   * An upper bound: all messages that the broker counts, including delayed messages of other queues in the same place.
   */
  readonly counted: number
  /** The messages that are known to be in these queues. */
  readonly own: number
  /** Whether the count includes all messages: ready, in flight and delayed, in every part of the broker. */
  readonly isWhole: boolean
}

/** Counts the messages of queues. The last count of a stage browses at once, the others with pauses in between. */
export type Count = (queues: Iterable<string>, isLast: boolean) => Effect.Effect<Waiting, BrokerError.BrokerError>

/** Milliseconds between two times of browsing. */
const pause = 5000

const nothing: Waiting = { counted: 0, own: 0, isWhole: true }

/**
 * Makes the count. `isOurs` recognizes the letters of this redrive. `entered` returns how many of them may wait for earlier messages of
 * their keys, at most: those of other keys may wait for parked letters.
 */
export const make = (
  { admin, capabilities }: Pick<Broker.Service, "admin" | "capabilities">,
  isOurs: (message: Metadata.Metadata) => boolean,
  entered: () => number
): Effect.Effect<Count> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    /** The result of the last browse of each queue. */
    const looks = new Map<string, { readonly at: number; readonly found: Waiting }>()

    /** Returns how many delayed messages are letters of this redrive. */
    const look = (queue: string, most: number) =>
      Effect.gen(function* () {
        if (capabilities.delayedMessages !== true) return { ...nothing, counted: most }
        let own = 0
        // Without the policy of its consumers, which are in another process.
        const browsed = browse({ admin, capabilities }, queue, RetryPolicy.make(), (message) => {
          if (isOurs(message.delivery.metadata)) own++
          return false
        })
        // A user may have permission to count, but not to browse.
        const isWhole = yield* browsed.pipe(
          Effect.map((found) => found.isWhole),
          Effect.catchIf(
            ({ reason }) => reason === "AccessRefused",
            () => Effect.succeed(false)
          )
        )
        return { counted: isWhole ? own : Math.max(own, most), own, isWhole: true }
      })

    const shared = (queue: string, others: number, isLast: boolean) =>
      Effect.gen(function* () {
        const most = yield* admin.delayedAtMost?.(queue) ?? Effect.undefined
        if (most === undefined) return { ...nothing, isWhole: false }
        if (most === 0 || others > 0) return { ...nothing, counted: most }
        const last = looks.get(queue)
        const isRecent = last !== undefined && !isLast && now() - last.at < pause
        const next = isRecent ? last : { at: now(), found: yield* look(queue, most) }
        looks.set(queue, next)
        return next.found
      })

    const one = (queue: string, isLast: boolean) =>
      Effect.gen(function* () {
        const counted = yield* Effect.catchIf(
          admin.counts(queue),
          // A user may have permission to publish to a queue, but not to count it.
          ({ reason }) => reason === "AccessRefused",
          () => Effect.undefined
        )
        if (counted === undefined) return { ...nothing, isWhole: false }
        const { blocked = 0, delayed, inFlight, isMissing, isRead, missing = [], ready } = counted
        const held = inFlight ?? (isRead === false ? 0 : undefined)
        const others = (ready ?? 0) + (held ?? 0) + Math.min(blocked, entered())
        const waits =
          delayed === undefined
            ? yield* shared(queue, others, isLast)
            : { counted: delayed, own: delayed, isWhole: true }
        // The messages of a deleted queue were not acked, and are in no count.
        const isThere = isMissing !== true && missing.length === 0
        const isCounted = isThere && ready !== undefined && held !== undefined
        return plus({ counted: others, own: others, isWhole: isCounted }, waits)
      })

    return (queues, isLast) =>
      Effect.map(
        Effect.forEach(queues, (queue) => one(queue, isLast)),
        (all) => all.reduce(plus, nothing)
      )
  })

const plus = (a: Waiting, b: Waiting): Waiting => ({
  counted: a.counted + b.counted,
  own: a.own + b.own,
  isWhole: a.isWhole && b.isWhole
})
