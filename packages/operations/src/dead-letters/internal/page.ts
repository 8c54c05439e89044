/** The work on a page of dead letters: selects some, publishes their copies, and removes them. */
import { Broker, type BrokerError, type Delivery } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Admit } from "./audit.ts"
import type { SweepStats } from "./sweepStats.ts"
import * as Publishing from "./publishing.ts"
import * as Reading from "./reading.ts"
import type { Failed } from "./report.ts"
import type { Seen } from "./seen.ts"

/** The work on a page. */
export interface Work {
  /** Whether the letter is selected. Called once for each. An error that it throws ends the sweep. */
  readonly select: (letter: Delivery.Delivery) => boolean
  /**
   * Whether the letter may have arrived after the work began. It is called if the queue has more letters than at the
   * beginning. Default: no.
   */
  readonly isNew?: ((letter: Delivery.Delivery) => boolean) | undefined
  /** Publishes the copy of a selected letter before it is removed. */
  readonly copy: ((letter: Delivery.Delivery) => Effect.Effect<void, BrokerError.BrokerError>) | "none"
}

/** A sweep, as its pages see it. */
export interface Sweep {
  readonly browser: Broker.Browser
  readonly books: SweepStats
  readonly seen: Seen
  readonly work: Work
  readonly admit: Admit
  readonly publish: Publishing.Publish
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly end: Publishing.Ending
  /** Reports the current counts. */
  readonly step: Effect.Effect<void>
  /** The number of letters that its browser holds. */
  held: number
  /** How many of the held letters are undecided, because the limit is reached. */
  undecided: number
}

/** Call this when the browser has lost its letters: it shows the existing ones again. */
export const reopen = (sweep: Sweep): void => {
  sweep.seen.reopen()
  sweep.held = 0
  sweep.undecided = 0
}

/** The letters of a page. */
interface Choice {
  /** Letters that were selected. */
  readonly chosen: ReadonlyArray<Delivery.Delivery>
  /** Letters that were published earlier, and only need to be removed. */
  readonly published: ReadonlyArray<Delivery.Delivery>
  /** The error that a function of the program threw. */
  readonly thrown: { readonly error: unknown } | undefined
}

/** Decides on a new letter; returns whether it is selected. */
const isSelected = (sweep: Sweep, letter: Delivery.Delivery): boolean => {
  const { books, seen, work } = sweep
  // Counts show how many letters arrived, and their times which ones: clocks need not agree.
  const isLate = books.arrived() > 0 && work.isNew?.(letter) === true
  if (isLate) books.leave()
  else books.decide()
  const isMeant = !isLate && work.select(letter)
  seen.decide(letter)
  if (isMeant) books.select()
  return isMeant
}

const choose = (sweep: Sweep, page: ReadonlyArray<Broker.BrowsedMessage>): Effect.Effect<Choice> =>
  Effect.gen(function* () {
    const { books, now, seen } = sweep
    const [chosen, published]: [Array<Delivery.Delivery>, Array<Delivery.Delivery>] = [[], []]
    let yielded = now()
    for (const { delivery } of page) {
      if (now() - yielded >= Reading.slice) {
        yield* Effect.yieldNow
        yielded = now()
      }
      const state = seen.see(delivery)
      if (state === "published") published.push(delivery)
      if (state !== undefined) continue
      if (books.wanted() === 0) {
        sweep.undecided++
        continue
      }
      try {
        if (isSelected(sweep, delivery)) chosen.push(delivery)
      } catch (error) {
        return { chosen, published, thrown: { error } }
      }
    }
    return { chosen, published, thrown: undefined }
  })

/** Publishes one copy; returns whether it is confirmed. */
const copied = (sweep: Sweep, letter: Delivery.Delivery, of: Exclude<Work["copy"], "none">) => {
  const { books, publish, seen } = sweep
  const published = publish(
    Effect.suspend(() => of(letter)),
    () => books.unanswered(letter)
  )
  return Effect.matchEffect(published, {
    onSuccess: () =>
      Effect.sync(() => {
        seen.set(letter, "published")
        books.leaves(letter)
        return true
      }),
    onFailure: (error) =>
      Effect.suspend(() => {
        if (Broker.fateOf(error) !== "rejected") return Effect.fail(error)
        // If the broker accepts none of them, the letters are not the problem.
        return books.refuse(letter, error) ? Effect.fail(error) : Effect.succeed(false)
      })
  })
}

/** Groups letters that may be published concurrently. The letters of a message group keep their order. */
const groupsOf = (letters: ReadonlyArray<Delivery.Delivery>): ReadonlyArray<ReadonlyArray<Delivery.Delivery>> => [
  ...Map.groupBy(letters, (letter) => letter.group ?? letter).values()
]

/** Publishes the copies of letters. Returns the letters that may be removed, and why the publishing stopped. */
const copyAll = (sweep: Sweep, chosen: ReadonlyArray<Delivery.Delivery>) =>
  Effect.gen(function* () {
    const { books, seen, work } = sweep
    const { copy } = work
    if (copy === "none") {
      for (const letter of chosen) {
        seen.set(letter, "published")
        books.leaves(letter)
      }
      return [chosen, undefined] as const
    }
    const done: Array<Delivery.Delivery> = []
    // The first letter that is not published holds back the rest of its group.
    const inTurn = (group: ReadonlyArray<Delivery.Delivery>) =>
      Effect.gen(function* () {
        for (const letter of group) {
          if (!(yield* copied(sweep, letter, copy))) return
          done.push(letter)
        }
      })
    const exits = yield* Effect.forEach(groupsOf(chosen), (group) => Effect.exit(inTurn(group)), {
      concurrency: "unbounded"
    })
    return [done, exits.find(Exit.isFailure)?.cause] as const
  })

/**
 * Removes letters whose copies are confirmed. Removals without an answer are retried for a minute. Returns why the browser has
 * lost a letter, if it has.
 */
const remove = Effect.fnUntraced(function* (sweep: Sweep, letters: ReadonlyArray<Delivery.Delivery>) {
  const { books, browser, end, now, seen } = sweep
  let left = letters
  let loss: BrokerError.BrokerError | undefined
  const next = Publishing.retries(now)
  while (left.length > 0) {
    const failures = new Map((yield* browser.remove(left)).map((failure) => [failure.delivery, failure]))
    for (const letter of left) {
      const failure = failures.get(letter)
      if (failure === undefined) {
        sweep.held--
        books.remove(letter)
        seen.remove(letter)
        continue
      }
      const { error, fate } = failure
      books.leaves(letter, error, fate === "lost" && browser.identify(letter) !== undefined)
      if (fate === "rejected") seen.set(letter, "passed")
      if (fate !== "lost") continue
      sweep.held--
      seen.lose(letter)
      loss = error
    }
    left = left.filter((letter) => /^(transient|unknown)$/.test(failures.get(letter)?.fate ?? ""))
    const pause = left.length > 0 ? next() : 0
    if (pause === undefined) return yield* failures.get(left[0]!)!.error
    if (pause > 0) yield* end.sleep(pause)
  }
  return loss
})

/**
 * Works on a page. Published letters are removed, whatever happens to the others. Returns why the browser has lost a letter again
 * that was published before, if it has.
 */
export const work = (
  sweep: Sweep,
  page: ReadonlyArray<Broker.BrowsedMessage>
): Effect.Effect<BrokerError.BrokerError | undefined, Failed> =>
  Effect.gen(function* () {
    sweep.held += page.length
    const { chosen, published, thrown } = yield* choose(sweep, page)
    const loss = yield* remove(sweep, published)
    yield* sweep.admit(chosen)
    const [done, failed] = yield* copyAll(sweep, chosen)
    // A program that ends during the removal has already reported what was published.
    const reported = yield* Effect.exit(sweep.step)
    yield* remove(sweep, done)
    yield* reported
    if (failed !== undefined) return yield* Effect.failCause(failed)
    if (thrown !== undefined) return yield* Effect.die(thrown.error)
    return loss
  })
