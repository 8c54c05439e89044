/** Browses letters page by page. They return to the queue at the end, and none is stored here. */
import type { Broker, BrokerError, Delivery } from "@requeue/core"
import { Log } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Filter from "../../internal/Filter.ts"
import { type DeadLetter, fromDelivery } from "./deadLetter.ts"
import * as Held from "./held.ts"
import * as Publishing from "./publishing.ts"
import * as Seen from "./seen.ts"

/** The largest number of letters to browse. */
const limit = 100_000

/**
 * Milliseconds for which browsing goes on after as many letters as were counted. Later letters may have arrived since. If
 * letters arrive all the time, browsing would otherwise never end.
 */
const overtime = 5000

/** Milliseconds for which a filter works before other work runs, so a slow filter stops no consumer of its process. */
export const slice = 20

/** The number of letters in a page. */
const pageSize = 1000

export interface Options {
  /** The largest number of letters that are selected. Default: no limit. */
  readonly limit?: number | undefined
  /** Selects a letter if it returns `true`; it is called once for each letter. Default: all letters. */
  readonly select?: ((letter: Delivery.Delivery) => boolean) | undefined
}

/** How far browsing has come. */
export interface Progress {
  /** The number of browsed letters. */
  readonly browsed: number
  /** The number of letters in the queue when browsing began; `undefined` if the broker cannot count. */
  readonly total: number | undefined
}

export interface Reading {
  /** Returns the selected letters of the next page, if any; `undefined` at the end. */
  readonly next: Effect.Effect<ReadonlyArray<Delivery.Delivery> | undefined, BrokerError.BrokerError>
  readonly progress: () => Progress
  /** The number of letters that another reader held at the beginning; `undefined` if unknown. */
  readonly held: number | undefined
  /**
   * Returns the number of letters that the broker did not show, because they come after others of their message groups.
   */
  readonly hidden: () => number
}

/** Whether the filter selects the letter. The filter gets a copy. */
export const matches = (letter: Delivery.Delivery, filter: ((letter: DeadLetter) => unknown) | undefined): boolean =>
  Filter.selects(filter, () => fromDelivery(letter))

/** Begins to browse, until the scope closes. */
export const open = (
  broker: Broker.Service,
  queue: string,
  { limit: wanted = Number.POSITIVE_INFINITY, select }: Options
): Effect.Effect<Reading, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { delayed = 0, held, isMissing = false, ready } = yield* Held.count(broker, queue)
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    // A count that is not exact may be 0 though there are letters.
    const isEmpty = isMissing || (broker.capabilities.exactCounts && ready === 0 && delayed === 0)
    let [browsed, selected, isGrouped, isOver] = [0, 0, false, isEmpty]
    let end = Number.POSITIVE_INFINITY
    let yielded = now()
    const most = Math.min(select === undefined ? wanted : limit, limit)
    const browser = isOver ? undefined : yield* broker.admin.browse({ queue, from: "ready", limit: most })
    const seen = Seen.make((letter) => browser?.identify(letter))
    const retry = Publishing.retriesUntilProgress(now, () => browsed)
    let isReopened = false
    /** Returns the next page. A browser that has lost its letters shows them again. */
    const pageOf = (
      from: Broker.Browser
    ): Effect.Effect<ReadonlyArray<Broker.BrowsedMessage>, BrokerError.BrokerError> =>
      Effect.suspend(() => from.next(Math.min(pageSize, isReopened ? most : most - browsed))).pipe(
        Effect.catch((error) => {
          const isLoss = Publishing.isLoss(error)
          if (isLoss) seen.reopen()
          isReopened ||= isLoss
          const pause = isLoss || (isReopened && error.isRetryable) ? retry() : undefined
          return pause === undefined
            ? Effect.fail(error)
            : Effect.andThen(Effect.sleep(Duration.millis(pause)), pageOf(from))
        })
      )
    const take = (page: ReadonlyArray<Broker.BrowsedMessage>) =>
      Effect.gen(function* () {
        const taken: Array<Delivery.Delivery> = []
        for (const { delivery: letter } of page) {
          if (selected >= wanted) break
          if (select !== undefined && now() - yielded >= slice) {
            yield* Effect.yieldNow
            yielded = now()
          }
          if (seen.see(letter) !== undefined) continue
          seen.decide(letter)
          browsed++
          isGrouped ||= letter.group !== undefined
          if (select?.(letter) === false) continue
          selected++
          taken.push(letter)
        }
        if (ready !== undefined && browsed >= ready) end = Math.min(end, now() + overtime)
        isOver = page.length === 0 || selected >= wanted || now() >= end
        return taken
      })
    return {
      next: Effect.suspend(() =>
        isOver || browser === undefined
          ? Effect.undefined
          : Effect.flatMap(pageOf(browser), (page) =>
              page.length === 0 ? Effect.sync(() => void (isOver = true)) : take(page)
            )
      ),
      progress: () => ({ browsed, total: ready === undefined ? undefined : Math.max(ready, browsed) }),
      held,
      hidden: () => (isGrouped && isOver && selected < wanted ? Math.max(0, (ready ?? 0) - browsed) : 0)
    }
  })

/** Browses all pages, and calls back after each. */
export const each = (
  { next, progress }: Reading,
  visit: (letter: Delivery.Delivery) => void,
  onPage: (progress: Progress) => void = () => {}
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    for (let page = yield* next; page !== undefined; page = yield* next) {
      for (const letter of page) visit(letter)
      onPage(progress())
    }
  })

/** Logs how many letters the broker hid, if any. */
export const tellHidden = (queue: string, { hidden }: Reading): Effect.Effect<void> =>
  Effect.suspend(() =>
    hidden() === 0
      ? Effect.void
      : Log.warning("dead letters were browsed in part: the broker shows only the first letters of each group", {
          queue,
          hidden: hidden()
        })
  )
