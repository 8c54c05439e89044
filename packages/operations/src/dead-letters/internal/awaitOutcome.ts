/** Waits until the outcome of a stage's letters is known, up to a limit. */
import type { BrokerError } from "@requeue/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Ledger } from "./ledger.ts"
import { timeout } from "./publishing.ts"
import type { StoppedBy } from "./report.ts"
import type { Waiting } from "./waiting.ts"
import type { Watch } from "./watch.ts"

export interface Dependencies {
  readonly ledger: Ledger
  readonly watch: Watch
  /** The queues that have been redriven to. */
  readonly targets: ReadonlySet<string>
  /** Whether the broker's counts are exact at any moment. */
  readonly isExact: boolean
  /** Called when the ledger has the latest counts. */
  readonly onSeen: () => void
  /** In monotonic milliseconds. */
  readonly now: () => number
  /** The share of a stage that may come back. */
  readonly stopAt: number
  /** The longest time to wait, in milliseconds. */
  readonly wait: number
}

export interface OutcomeWait {
  /**
   * Counts the waiting messages, and browses the new dead letters. Returns `undefined` while the broker is away, for a
   * minute at most. The last check of a stage browses at once.
   */
  readonly check: (isLast: boolean) => Effect.Effect<Waiting | undefined, BrokerError.BrokerError>
  /** Whether more letters have come back than the limit allows. */
  readonly isBeyond: () => boolean
  /** Waits, and returns why no letter may follow; `undefined` if more may. */
  readonly settle: Effect.Effect<StoppedBy | undefined, BrokerError.BrokerError>
}

/** Milliseconds between two counts. */
export const interval = 1000

/** Milliseconds for which counts that are not exact must be 0, as in a sweep. */
const quiet = 10_000

const never = Number.POSITIVE_INFINITY

/** Milliseconds until the next count. The last count is at the end. */
const untilNext = (now: number, end: number): number => (now < end ? Math.min(interval, end - now) : interval)

/** Returns a function that records a number, and returns the largest one of the last milliseconds. */
const lately = (now: () => number, millis: number): ((count: number) => number) => {
  const counts: Array<readonly [at: number, count: number]> = []
  return (count) => {
    counts.push([now(), count])
    // The first one is from the beginning.
    while (counts.length > 1 && counts[1]![0] <= now() - millis) counts.shift()
    return Math.max(...counts.map(([, each]) => each))
  }
}

export const make = (dependencies: Dependencies): OutcomeWait => {
  const { isExact, ledger, now, onSeen, stopAt, targets, wait, watch } = dependencies
  const isBeyond = () => ledger.isBeyond(stopAt, watch.unseen())

  /** Counts that are not exact may be old, so the largest of them is an upper bound. */
  const most = lately(now, isExact ? 0 : quiet)
  let [failing, known]: [number | undefined, number] = [undefined, 0]
  /** Whether the wait for all that has been published is over. */
  let isOver = false
  const check = (isLast: boolean): Effect.Effect<Waiting | undefined, BrokerError.BrokerError> =>
    Effect.gen(function* () {
      const published = ledger.published()
      if (published > known) {
        most(ledger.outstanding())
        isOver = false
      }
      known = published
      // In this order: a message that moves in between is counted twice, and not missed.
      const waiting = yield* watch.waiting(targets, isLast)
      yield* watch.look(isLast)
      failing = undefined
      const counted = most(waiting.isWhole ? waiting.counted : ledger.outstanding())
      // Nothing seems to wait, and later counts could not be confirmed in time.
      const isTooSoon = isOver && waiting.counted === 0 && counted > 0
      const isKnown = waiting.isWhole && !isTooSoon
      // Letters that arrived in the dead-letter queues, and were not browsed yet, have not succeeded either.
      ledger.see({ counted: isKnown ? counted + watch.fresh() : undefined, unseen: watch.unseen() })
      onSeen()
      return waiting
    }).pipe(
      Effect.catch((error) => {
        failing ??= now()
        most(ledger.outstanding())
        return error.isRetryable && now() - failing < timeout ? Effect.succeed(undefined) : Effect.fail(error)
      })
    )

  const settle: OutcomeWait["settle"] = Effect.gen(function* () {
    const end = now() + wait
    let [last, hasLeft, emptySince] = [0, false, never]
    while (true) {
      isOver = now() >= end || now() - emptySince >= (isExact ? 0 : quiet)
      const waiting = yield* check(isOver)
      const outstanding = ledger.outstanding()
      if (outstanding === 0) return isBeyond() ? "stop-at" : undefined
      emptySince = waiting?.isWhole === true && waiting.counted === 0 ? Math.min(emptySince, now()) : never
      if (waiting !== undefined) {
        // Messages of other queues there say nothing about this queue.
        const { own } = waiting
        hasLeft ||= own < Math.max(last, outstanding)
        last = own
        if (isOver) return isBeyond() ? "stop-at" : own > 0 && !hasLeft ? "wait" : undefined
      }
      // Exact counts of 0 need no second count.
      if (!isExact || emptySince > now()) yield* Effect.sleep(Duration.millis(untilNext(now(), end)))
    }
  })

  return { check, isBeyond, settle }
}
