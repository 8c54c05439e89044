/**
 * Goes once through the dead letters of a queue, page by page: selects letters, publishes their copies before
 * they leave, and removes them. The other letters return to the queue at the end.
 */
import { type Broker, BrokerError, type Delivery } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Audit from "./audit.ts"
import * as Books from "./sweepStats.ts"
import * as Callback from "./callback.ts"
import * as Held from "./held.ts"
import * as Page from "./page.ts"
import * as Publishing from "./publishing.ts"
import * as Quiet from "./idleDetector.ts"
import * as Reading from "./reading.ts"
import type { Failed } from "./report.ts"
import * as Seen from "./seen.ts"

export { matches } from "./reading.ts"

export interface Options {
  /** The largest number of dead letters that are selected. Default: no limit. */
  readonly limit?: number | undefined
  /**
   * The number of letters in the queue when the operation began; letters after them arrived later. An operation has several
   * sweeps. Default: the letters in the queue now.
   */
  readonly known?: number | undefined
  /** The largest number of dead letters per second. Default: no limit. */
  readonly rate?: number | undefined
  /** A signal that ends the sweep. Default: no signal. */
  readonly signal?: AbortSignal | undefined
  /**
   * A function that gets selected letters before their copies are published, or before they are removed without copies.
   */
  readonly audit?: Audit.Audit | undefined
}

/** The work of a sweep. */
export interface Work extends Omit<Page.Work, "copy"> {
  /** Publishes the copy of a selected letter before it is removed. With `look`, no letter is removed. */
  readonly copy: Page.Work["copy"] | "look"
  /** Called after each step. An error that it throws ends the sweep. */
  readonly onStep: (summary: () => Books.Summary) => void
}

/** Work that removes letters. */
type Moving = Page.Work & Pick<Work, "onStep">

/** The end of a sweep. */
export interface Ended {
  readonly summary: Books.Summary
  /**
   * Why the sweep stopped; `undefined` if it reached its end, or was aborted. If the broker fails while letters are only
   * browsed, the call fails.
   */
  readonly error: Failed | undefined
  /** Letters that the broker has not shown, because they come after letters that stay. */
  readonly hidden: number
  /** Letters that the broker has not shown, because the sweep holds as many as it may. */
  readonly unreached: number
}

/** The largest number of letters in progress at a time. If the connection is lost, their outcome is in doubt. */
const pageSize = 100

/** The largest number of letters that are passed over, and held until the end. */
const heldLimit = 100_000

/** Milliseconds that the last page has to finish. */
const grace = 5000

/** Runs a sweep. Fails if it cannot begin. */
export const run = (
  broker: Broker.Service,
  queue: string,
  options: Options,
  work: Work
): Effect.Effect<Ended, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { limit = Number.POSITIVE_INFINITY, signal } = options
    const { copy } = work
    if (copy === "look") return yield* look(broker, queue, options, work)
    let books = Books.make(undefined, limit, undefined)
    let hasBegun = false
    let [hidden, unreached] = [0, 0]
    const sweep = Effect.gen(function* () {
      if (signal?.aborted === true) return
      // Letters that arrive later stay: else one that always fails would be redriven for ever.
      const { held, isMissing, ready } = yield* Held.count(broker, queue, options.known)
      if (isMissing === true) return yield* Quiet.deleted(broker, queue)
      books = Books.make(ready, limit, held, options.known)
      if (ready === 0) return
      const browser = yield* broker.admin.browse({ queue, from: "ready", limit: heldLimit })
      books = Books.make(ready, limit, held, options.known, browser.identify)
      hasBegun = true
      unreached = yield* through(broker, queue, browser, options, { ...work, copy }, books)
      hidden = browser.browsed().hidden ?? 0
    })
    const ended = Callback.caught(Effect.scoped(Effect.raceFirst(sweep, aborted(signal))))
    const error = yield* Effect.matchEffect(ended, {
      onSuccess: () => Effect.succeed(undefined),
      // Letters have arrived by the time an audit or a filter gets them.
      onFailure: (error) =>
        hasBegun || !(error instanceof BrokerError.BrokerError) ? Effect.succeed(error) : Effect.fail(error)
    })
    return { summary: books.summary(), error, hidden, unreached }
  })

/** Selects letters, and leaves all of them where they are. */
const look = (
  broker: Broker.Service,
  queue: string,
  { limit = Number.POSITIVE_INFINITY, signal }: Options,
  { onStep, select }: Work
): Effect.Effect<Ended, BrokerError.BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      let books = Books.make(undefined, limit, undefined)
      const seen = Effect.gen(function* () {
        if (signal?.aborted === true) return 0
        const counted = (letter: Delivery.Delivery): boolean => {
          books.decide()
          const isSelected = select(letter)
          if (isSelected) books.select()
          return isSelected
        }
        const reading = yield* Reading.open(broker, queue, { limit, select: counted })
        books = Books.make(reading.progress().total, limit, reading.held)
        const step = () => onStep(() => books.summary())
        yield* Reading.each(reading, () => {}, step)
        yield* Reading.tellHidden(queue, reading)
        return reading.hidden()
      })
      return yield* Callback.caught(Effect.raceFirst(seen, Effect.as(aborted(signal), 0))).pipe(
        Effect.map((hidden): Ended => ({ summary: books.summary(), error: undefined, hidden, unreached: 0 })),
        Effect.catchTag("CallbackFailed", (error) =>
          Effect.succeed<Ended>({ summary: books.summary(), error, hidden: 0, unreached: 0 })
        )
      )
    })
  )

/** Works on page after page, until none is left. Returns the number of letters that it could not reach. */
const through = (
  broker: Broker.Service,
  queue: string,
  browser: Broker.Browser,
  { audit, rate }: Options,
  { onStep, ...work }: Moving,
  books: Books.SweepStats
): Effect.Effect<number, Failed> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const end = Publishing.ending()
    const step = Effect.sync(() => onStep(books.summary))
    const sweep: Page.Sweep = {
      browser,
      books,
      seen: Seen.make(browser.identify),
      work,
      admit: Audit.make(queue, audit),
      publish: Publishing.make(now, end, rate),
      now,
      end,
      step,
      held: 0,
      undecided: 0
    }
    const most = rate === undefined ? pageSize : Math.min(pageSize, Math.ceil(rate))
    // A page has no more letters than are published at once: the leases of more would end meanwhile.
    const room = (): number => (books.wanted() > 0 ? Math.min(most, books.wanted()) : pageSize)
    let shown = now()
    // A sweep whose leases end before it reaches a new letter would never end.
    const retry = Publishing.retriesUntilProgress(now, books.progress)
    const pauseAfter = (failure: BrokerError.BrokerError) =>
      Effect.suspend(() => {
        const pause = retry()
        return pause === undefined ? Effect.fail(failure) : Effect.sleep(Duration.millis(pause))
      })
    const endIfMissing = ({ reason }: BrokerError.BrokerError) =>
      Effect.sync(() => {
        if (reason === "QueueMissing") books.endMissing()
      })
    while (books.wanted() > 0 || books.lost() > 0) {
      const next = yield* Effect.result(browser.next(room()))
      if (Result.isFailure(next)) {
        const { failure } = next
        const isLoss = Publishing.isLoss(failure)
        if (isLoss) Page.reopen(sweep)
        if (!isLoss && !failure.isRetryable) return yield* Effect.andThen(endIfMissing(failure), failure)
        yield* pauseAfter(failure)
        shown = now()
        continue
      }
      if (next.success.length > 0) {
        const before = books.progress()
        const loss = yield* finishing(Effect.ensuring(Page.work(sweep, next.success), step), end)
        // The broker may show a lost letter again immediately, and lose it again: another process's clock may be ahead.
        if (loss !== undefined && books.progress() === before) yield* pauseAfter(loss)
        shown = now()
        continue
      }
      if (sweep.held >= heldLimit) return books.wanted()
      const waiting = { quiet: now() - shown, held: sweep.held }
      const left = yield* Effect.tapError(Quiet.end(broker, queue, waiting), endIfMissing)
      if (left !== undefined) {
        books.end(left, sweep.undecided)
        break
      }
      yield* Effect.sleep(Duration.millis(Quiet.interval))
    }
    return 0
  })

/** Lets interrupted work finish within a time. It begins nothing new. */
const finishing = <A, E>(work: Effect.Effect<A, E>, end: Publishing.Ending): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkDetach(work)
    const stop = Effect.gen(function* () {
      end.begin()
      yield* Effect.timeoutOption(Fiber.await(fiber), Duration.millis(grace))
      yield* Fiber.interrupt(fiber)
    })
    return yield* Effect.onInterrupt(Fiber.join(fiber), () => stop)
  })

/** Succeeds when the signal is aborted. */
export const aborted = (signal: AbortSignal | undefined): Effect.Effect<void> =>
  signal === undefined
    ? Effect.never
    : Effect.callback<void>((resume) => {
        const onAbort = () => resume(Effect.void)
        if (signal.aborted) return onAbort()
        signal.addEventListener("abort", onAbort, { once: true })
        return Effect.sync(() => signal.removeEventListener("abort", onAbort))
      })
