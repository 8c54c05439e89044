/**
 * Goes once through the waiting dead letters of a queue, as a consumer does: on the same engine, with its reconnects and
 * its settlements. What it does not remove goes back at the end.
 */
import { BatchPolicy, Broker, BrokerError, type Delivery, RetryPolicy, Telemetry } from "@requeue/core"
import * as Engine from "@requeue/core/engine"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Again from "./again.ts"
import * as Audit from "./audit.ts"
import * as Arrivals from "./arrivals.ts"
import * as Copies from "./copies.ts"
import * as Held from "./held.ts"
import * as Letters from "./letters.ts"
import * as Publishing from "./publishing.ts"
import * as Reading from "./reading.ts"
import * as Shelf from "./shelf.ts"
import * as Silence from "./silence.ts"
import * as Books from "./books.ts"
import * as Callback from "./callback.ts"
import type { Failed } from "./report.ts"

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
  /** Publishes what must be there before a selected letter is removed. In a look, none is removed or moved. */
  readonly copy: ((letter: Delivery.Delivery) => Effect.Effect<void, BrokerError.BrokerError>) | "none" | "look"
  /** Called after each step. What it throws ends the sweep. */
  readonly onStep: (summary: () => Books.Summary) => void
}

/** Work by which letters leave, or may. */
type Moving = Omit<Work, "copy"> & { readonly copy: Exclude<Work["copy"], "look"> }

/** The end of a sweep. */
export interface Ended {
  readonly summary: Books.Summary
  /**
   * Why it went no further; `undefined` when it came to its end, or was aborted. Where the broker fails a look, the call
   * fails.
   */
  readonly error: Failed | undefined
  /**
   * Letters that wait, and that the broker has not shown: they are behind others of their groups, which are kept. It shows no
   * more of a group before these are gone.
   */
  readonly hidden: number
}

/** The most letters that are worked on at a time. */
const page = 100

/** Letters that are held. Further ones are moved to the tail; with twice as many, those that were moved come round. */
const heldLimit = 1000

/** Milliseconds that publishes and settlements under way have at the end. */
const grace = 5000

/** No handler fails, and nothing is declared for letters that would be given up. */
const retry = RetryPolicy.make({ maxAttempts: "unlimited", deadLetter: "discard" })

/** Fails when it cannot begin. */
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
    let hidden = 0
    const sweep = Effect.gen(function* () {
      if (signal?.aborted === true) return
      // Dead letters that arrive later are left for the next time, lest one that always fails is redriven for ever.
      const { held, ready } = yield* Held.count(broker, queue, options.known)
      books = Books.make(ready, limit, held, options.known)
      if (ready === 0) return
      const end = yield* begin(broker, queue, options, { ...work, copy }, books)
      hasBegun = true
      hidden = yield* end
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

/** Begins, and returns an effect that waits for the end. What is unfinished when the scope closes goes back. */
const begin = (broker: Broker.Service, queue: string, { audit, rate }: Options, work: Moving, books: Books.Books) =>
  Effect.gen(function* () {
    const over = Deferred.makeUnsafe<void, BrokerError.BrokerError | Audit.AuditFailed>()
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    // A redrive takes the letters of a group one by one, so that they stay in order.
    const together = typeof work.copy === "string" ? page : 1
    const watched = watch(broker, together, (requests, failures) => arrivals.settled(requests, failures))
    const { identify } = watched
    const silence = Silence.make()
    const again = Again.make(identify)
    const shelf = Shelf.make(heldLimit)
    const letters = Letters.make({
      books,
      shelf,
      page: rate === undefined ? page : Math.min(page, Math.ceil(rate)),
      identify,
      onStep: () => {
        silence.broken()
        work.onStep(books.summary)
      },
      onRoom: () => engine.refresh(),
      onEnd: (exit) => Deferred.doneUnsafe(over, exit)
    })
    const admit = Audit.make(queue, audit)
    const copies = Copies.make({
      books,
      shelf,
      letters,
      copy:
        typeof work.copy !== "string"
          ? { publish: Publishing.make(now, rate), of: work.copy, admit }
          : audit === undefined
            ? work.copy
            : Copies.none(admit),
      copyBehind: {
        publish: Publishing.make(now),
        of: ({ body, headers, metadata }) => broker.publish([{ queue, body, headers, delay: 0, metadata }])
      },
      identify,
      fork: Effect.runForkWith(yield* Effect.context()),
      onMove: again.moving
    })
    const arrivals = Arrivals.make({ again, books, copies, identify, letters, ...work })
    const { consumer, engine } = yield* Engine.make<never>({
      queue: { name: queue, codec: { decode: () => undefined } },
      options: { retry, drainTimeout: grace },
      batch: BatchPolicy.single,
      single: true,
      concurrency: () => Number.POSITIVE_INFINITY,
      window: letters.window,
      runHandler: () => arrivals.arrive,
      isJob: true
    }).pipe(
      Effect.catchTag("ConfigurationError", Effect.die),
      Effect.provideService(Broker.Broker, watched.broker),
      // Spans of a consumer are for handlers; a redrive is seen by its sends.
      Effect.provideService(Telemetry.Telemetry, undefined)
    )
    yield* Effect.addFinalizer(() => {
      letters.finish(Exit.void)
      return consumer.drain()
    })
    engine.refresh()
    const isPaused = () => engine.stats().backoff.some(({ state }) => state !== "running")
    const trouble = () => engine.stats().trouble?.error.message
    const quiet = silence.end(broker, queue, { ...shelf, ...books, isPaused, trouble })
    const isGrouped = () => [...shelf.held()].some(({ item }) => item.delivery.group !== undefined)
    return Effect.raceFirst(
      Effect.as(Deferred.await(over), 0),
      Effect.map(quiet, (left) => {
        books.end(left)
        return isGrouped() ? left.ready : 0
      })
    )
  })

/**
 * The broker with a subscription whose answers are seen, and whose names of copies can be asked. It may bring so many letters
 * of a group at a time.
 */
const watch = (
  broker: Broker.Service,
  maxBatchSize: number,
  onAnswer: (requests: ReadonlyArray<Broker.SettleRequest>, failures: ReadonlyArray<Broker.SettleFailure>) => void
) => {
  let names: Broker.Subscription["identify"]
  const watched: Broker.Service = {
    ...broker,
    subscribe: (options) =>
      Effect.map(broker.subscribe({ ...options, maxBatchSize, isJob: true }), (subscription) => {
        names = subscription.identify
        return {
          ...subscription,
          settle: (requests) =>
            Effect.tap(subscription.settle(requests), (failures) => Effect.sync(() => onAnswer(requests, failures)))
        }
      })
  }
  return { broker: watched, identify: (delivery: Delivery.Delivery) => names?.(delivery) }
}

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
