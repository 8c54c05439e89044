/**
 * Goes once through the waiting dead letters of a queue, page by page: chooses letters, publishes what must be there before
 * they leave, and removes them. What it does not remove is returned at the end.
 */
import { Broker, BrokerError, type Delivery } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Audit from "./audit.ts"
import * as Books from "./books.ts"
import * as Callback from "./callback.ts"
import * as Held from "./held.ts"
import * as Publishing from "./publishing.ts"
import * as Quiet from "./quiet.ts"
import * as Reading from "./reading.ts"
import type { Failed } from "./report.ts"
import * as Seen from "./seen.ts"

export { matches } from "./reading.ts"

export interface Options {
  /** The most dead letters that are selected. Default: no limit. */
  readonly limit?: number | undefined
  /**
   * Letters that were there when the work began, of which this is one of several sweeps; what waits beyond these has arrived
   * since. Default: those that wait now.
   */
  readonly known?: number | undefined
  /** The most dead letters per second. Default: no limit. */
  readonly rate?: number | undefined
  /** Ends the sweep. Default: it is never ended. */
  readonly signal?: AbortSignal | undefined
  /** Told of selected letters before their copies are published, or before they are removed where there are none. */
  readonly audit?: Audit.Audit | undefined
}

/** How a sweep deals with the letters. */
export interface Work {
  /** Whether the letter is selected. Called once for each. What it throws ends the sweep. */
  readonly select: (letter: Delivery.Delivery) => boolean
  /** Whether the letter may have arrived since the work began; asked where more wait than were known. Default: none has. */
  readonly isNew?: ((letter: Delivery.Delivery) => boolean) | undefined
  /** Publishes what must be there before a selected letter is removed. In a look, none is removed. */
  readonly copy: ((letter: Delivery.Delivery) => Effect.Effect<void, BrokerError.BrokerError>) | "none" | "look"
  /** Called after each step. What it throws ends the sweep. */
  readonly onStep: (summary: () => Books.Summary) => void
}

/** The end of a sweep. */
export interface Ended {
  readonly summary: Books.Summary
  /**
   * Why it went no further; `undefined` when it came to its end, or was aborted. Where the broker fails a look, the call
   * fails.
   */
  readonly error: Failed | undefined
  /** Letters that wait, and that the broker has not shown, because they are behind others that are kept. */
  readonly hidden: number
}

/** The most letters that are worked on at a time: those in doubt when a connection is lost. */
const pageSize = 100

/** The most letters that are passed over, and held until the end. */
const heldLimit = 100_000

/** Milliseconds that a page under way has at the end. */
const grace = 5000

/** Fails when it cannot begin. */
export const run = (
  broker: Broker.Service,
  queue: string,
  options: Options,
  work: Work
): Effect.Effect<Ended, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { limit = Number.POSITIVE_INFINITY, signal } = options
    if (work.copy === "look") return yield* look(broker, queue, options, work)
    let books = Books.make(undefined, limit, undefined)
    let hasBegun = false
    let hidden = 0
    const sweep = Effect.gen(function* () {
      if (signal?.aborted === true) return
      // Dead letters that arrive later are left for the next time, lest one that always fails is redriven for ever.
      const { held, ready } = yield* Held.count(broker, queue, options.known)
      books = Books.make(ready, limit, held, options.known)
      if (ready === 0) return
      const browser = yield* broker.admin.browse({ queue, from: "ready", limit: heldLimit })
      books = Books.make(ready, limit, held, options.known, browser.identify)
      hasBegun = true
      yield* through(broker, queue, browser, options, work, books)
      hidden = browser.browsed().hidden ?? 0
    })
    const ended = Callback.caught(Effect.scoped(Effect.raceFirst(sweep, aborted(signal))))
    const error = yield* Effect.matchEffect(ended, {
      onSuccess: () => Effect.succeed(undefined),
      // An audit or a filter gets letters, which have come by then.
      onFailure: (error) =>
        hasBegun || !(error instanceof BrokerError.BrokerError) ? Effect.succeed(error) : Effect.fail(error)
    })
    return { summary: books.summary(), error, hidden }
  })
/** Selects, and leaves all letters where they are. */
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
        Effect.map((hidden): Ended => ({ summary: books.summary(), error: undefined, hidden })),
        Effect.catchTag("CallbackFailed", (error) =>
          Effect.succeed<Ended>({ summary: books.summary(), error, hidden: 0 })
        )
      )
    })
  )

/** Works on page after page, until nothing is left to do. */
const through = (
  broker: Broker.Service,
  queue: string,
  browser: Broker.Browser,
  { audit, rate }: Options,
  { copy, isNew, onStep, select }: Work,
  books: Books.Books
): Effect.Effect<void, Failed> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const end = Publishing.ending()
    const publish = Publishing.make(now, end, rate)
    const admit = Audit.make(queue, audit)
    const seen = Seen.make(browser.identify)
    const most = rate === undefined ? pageSize : Math.min(pageSize, Math.ceil(rate))
    const step = Effect.sync(() => onStep(books.summary))
    let held = 0
    /** Letters that are published, and that the broker has to show again. */
    let lost = 0

    /** Letters of a page that are to be published, and those that only need to be removed. */
    const choose = (page: ReadonlyArray<Broker.Delayed>) =>
      Effect.gen(function* () {
        const chosen: Array<Delivery.Delivery> = []
        const published: Array<Delivery.Delivery> = []
        let yielded = now()
        let thrown: { readonly error: unknown } | undefined
        const decide = (letter: Delivery.Delivery): void => {
          // Counts tell how many have arrived, and their times which these are: no two clocks need to be the same.
          const isLate = books.arrived() > 0 && isNew?.(letter) === true
          if (isLate) books.leave()
          else books.decide()
          const isSelected = !isLate && select(letter)
          seen.set(letter, "passed")
          if (!isSelected) return void held++
          books.select()
          chosen.push(letter)
        }
        for (const { delivery } of page) {
          if (thrown !== undefined) break
          if (now() - yielded >= Reading.slice) {
            yield* Effect.yieldNow
            yielded = now()
          }
          const state = seen.find(delivery)
          if (state === "published") published.push(delivery)
          else if (state === undefined && books.wanted() > 0) {
            try {
              decide(delivery)
            } catch (error) {
              thrown = { error }
            }
          }
        }
        return { chosen, published, thrown }
      })

    /** Publishes one copy; answers whether it is there. */
    const copied = (letter: Delivery.Delivery, of: Exclude<Work["copy"], string>) =>
      Effect.matchEffect(
        publish(
          Effect.suspend(() => of(letter)),
          () => books.unanswered(letter)
        ),
        {
          onSuccess: () =>
            Effect.sync(() => {
              seen.set(letter, "published")
              books.leaves(letter)
              return true
            }),
          onFailure: (error) =>
            Effect.suspend(() => {
              if (Broker.fateOf(error) !== "refused") return Effect.fail(error)
              held++
              // When the broker takes none of them, something else is wrong than the letters.
              return books.refuse(letter, error) ? Effect.fail(error) : Effect.succeed(false)
            })
        }
      )

    /** Removes letters whose copies are there. What gets no answer is tried again for a minute. */
    const remove = Effect.fnUntraced(function* (letters: ReadonlyArray<Delivery.Delivery>) {
      let left = letters
      const next = Publishing.retries(now)
      while (left.length > 0) {
        const failures = new Map((yield* browser.remove(left)).map((failure) => [failure.delivery, failure]))
        for (const letter of left) {
          const failure = failures.get(letter)
          if (failure === undefined) {
            books.remove(letter)
            seen.forget(letter)
          } else {
            books.leaves(letter, failure.error)
            if (failure.fate === "gone" && browser.identify(letter) !== undefined) lost++
            if (failure.fate === "refused") held++
          }
        }
        left = left.filter((letter) => /^(ours|unknown)$/.test(failures.get(letter)?.fate ?? ""))
        const pause = left.length > 0 ? next() : 0
        if (pause === undefined) return yield* failures.get(left[0]!)!.error
        if (pause > 0) yield* end.sleep(pause)
      }
    })

    /** Does with a page what is to be done. What was published is removed, whatever becomes of the others. */
    const workOn = (page: ReadonlyArray<Broker.Delayed>) =>
      Effect.gen(function* () {
        const { chosen, published, thrown } = yield* choose(page)
        lost -= published.length
        yield* admit(chosen)
        const [done, failed] = yield* copyAll(chosen)
        yield* remove([...published, ...done])
        yield* step
        if (failed !== undefined) return yield* Effect.failCause(failed)
        if (thrown !== undefined) return yield* Effect.die(thrown.error)
      })

    const copyAll = (chosen: ReadonlyArray<Delivery.Delivery>) =>
      Effect.gen(function* () {
        if (typeof copy === "string") {
          for (const letter of chosen) {
            seen.set(letter, "published")
            books.leaves(letter)
          }
          return [chosen, undefined] as const
        }
        const done: Array<Delivery.Delivery> = []
        // The letters of a group stay in order: the first that is not published keeps the rest of its group.
        const inTurn = (group: ReadonlyArray<Delivery.Delivery>) =>
          Effect.gen(function* () {
            for (const letter of group) {
              if (!(yield* copied(letter, copy))) return
              done.push(letter)
            }
          })
        const exits = yield* Effect.forEach(groupsOf(chosen), (group) => Effect.exit(inTurn(group)), {
          concurrency: "unbounded"
        })
        return [done, exits.find(Exit.isFailure)?.cause] as const
      })

    const room = (): number => (lost > 0 ? pageSize : Math.min(most, books.wanted()))
    let shown = now()
    let failing: ReturnType<typeof Publishing.retries> | undefined
    while (books.wanted() > 0 || lost > 0) {
      const next = yield* Effect.result(browser.next(room()))
      if (Result.isFailure(next)) {
        failing ??= Publishing.retries(now)
        const pause = next.failure.isRetryable ? failing() : undefined
        if (pause === undefined) return yield* next.failure
        yield* Effect.sleep(Duration.millis(pause))
        shown = now()
      } else if (next.success.length > 0) {
        failing = undefined
        yield* finishing(workOn(next.success), end)
        shown = now()
      } else {
        failing = undefined
        const waiting = { quiet: now() - shown, held, isWanting: true }
        const left = yield* Quiet.end(broker, queue, waiting)
        if (left !== undefined) return books.end(left)
        yield* Effect.sleep(Duration.millis(Quiet.interval))
      }
    }
  })

/** Letters that may be published side by side, and those of a group in their order. */
const groupsOf = (letters: ReadonlyArray<Delivery.Delivery>): ReadonlyArray<ReadonlyArray<Delivery.Delivery>> => {
  const groups = Map.groupBy(letters, (letter) => letter.group ?? letter)
  return [...groups.values()]
}

/** Runs work to its end when it is interrupted: for a time, and without beginning anything new. */
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
