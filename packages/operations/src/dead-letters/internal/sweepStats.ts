/** The counts of a sweep: the outcome of the letters of a queue. */
import type { BrokerError, Delivery } from "@requeue/core"
import type { Left } from "./idleDetector.ts"

/** A dead letter that could not be moved or removed. */
export interface FailedLetter {
  /** The message's id. */
  readonly id: string
  /**
   * Whether the copy of the letter was published. If so, the letter exists twice, because the broker refused to remove the
   * original.
   */
  readonly isPublished: boolean
  /** The broker's error; `undefined` if no answer arrived. */
  readonly error: BrokerError.BrokerError | undefined
}

/** The counts. */
export interface Summary {
  /** Selected letters whose copy was not refused. */
  readonly selected: number
  /** Selected letters that the broker has removed. */
  readonly removed: number
  /** Finished letters that the broker has not removed. */
  readonly unremoved: number
  /** Letters whose copy the broker refuses. */
  readonly refused: number
  /** Letters for which a publish got no answer. For each such publish of a letter, one more copy may exist. */
  readonly unconfirmed: number
  /** The first {@link failuresLimit} letters that were refused, and as many that are unremoved. */
  readonly failures: ReadonlyArray<FailedLetter>
  /** The letters from the beginning that are still in the queue; `undefined` if the broker does not count. */
  readonly queued: number | undefined
  /**
   * Letters that another reader held at the beginning, or has taken since and not removed. They are in no other count; `undefined`
   * if the broker does not count them.
   */
  readonly held: number | undefined
}

/** The counts of a sweep that has done nothing. */
export const nothing: Summary = {
  selected: 0,
  removed: 0,
  unremoved: 0,
  refused: 0,
  unconfirmed: 0,
  failures: [],
  queued: undefined,
  held: undefined
}

/** The counts, which change while the sweep runs. */
export interface SweepStats {
  readonly decide: () => void
  /** Records that a letter stays in the queue which arrived after the work began. */
  readonly leave: () => void
  /** Letters that arrived since the work began, and are not recorded by `leave`. */
  readonly arrived: () => number
  /**
   * Records that no more letters arrive: the other counted letters are with another reader, or gone. The browser holds
   * `undecided` of them.
   */
  readonly end: (left: Left, undecided: number) => void
  /** Records that the queue is missing, and with it all letters that were not removed. */
  readonly endMissing: () => void
  readonly select: () => void
  /** Records that a publish of the letter's copy got no answer. */
  readonly unanswered: (letter: Delivery.Delivery) => void
  /**
   * Records that the letter is finished, and must be removed. `error`: why the broker has not removed it. `isLost`: the
   * browser no longer holds it, and shows it again if it still exists.
   */
  readonly leaves: (letter: Delivery.Delivery, error?: BrokerError.BrokerError, isLost?: boolean) => void
  /** Records that the letter has been removed. */
  readonly remove: (letter: Delivery.Delivery) => void
  /** Returns the number of finished letters that the browser may show again. */
  readonly lost: () => number
  /** Returns a number that grows with each letter that is decided on or removed. */
  readonly progress: () => number
  /** Returns whether the broker has accepted no letter, after as many refusals as the report lists. */
  readonly refuse: (letter: Delivery.Delivery, error: BrokerError.BrokerError) => boolean
  /** Returns the number of letters to decide on, by the limit and the count. */
  readonly wanted: () => number
  readonly summary: () => Summary
}

/** The largest number of failures in the report. */
export const failuresLimit = 100

/**
 * Makes the statistics of a sweep. `ready` letters were counted; `undefined` if the broker cannot count. At most `known` of
 * them were there when the work began, and another reader held `heldBefore`. At most `limit` are selected. `identify`
 * identifies a letter over all its deliveries.
 */
export const make = (
  ready: number | undefined,
  limit: number,
  heldBefore: number | undefined,
  known = Number.POSITIVE_INFINITY,
  identify: (letter: Delivery.Delivery) => string | undefined = () => undefined
): SweepStats => {
  let held = heldBefore
  // Another reader may hold letters that were there when the work began.
  let arrived = Math.max(0, Math.min(ready ?? 0, (ready ?? 0) + (held ?? 0) - known))
  let found = ready === undefined ? undefined : ready - arrived
  const leaving = new Map<unknown, FailedLetter>()
  const lost = new Set<unknown>()
  const unconfirmed = new Set<unknown>()
  const refusals: Array<FailedLetter> = []
  const keyOf = (letter: Delivery.Delivery): unknown => identify(letter) ?? letter
  let [judged, left, selected, removed, refused] = [0, 0, 0, 0, 0]
  let isMissing = false
  const remove = (key: unknown): void => {
    lost.delete(key)
    // A letter that the broker shows again after its removal counts once.
    if (leaving.delete(key)) removed++
  }
  return {
    decide: () => void judged++,
    leave: () => {
      arrived--
      left++
    },
    arrived: () => arrived,
    end: ({ held: others, ready: waiting }, undecided) => {
      const missing = (found ?? 0) - judged - undecided - waiting
      if (found === undefined || missing <= 0) return
      found -= missing
      held = others === undefined ? undefined : Math.min(others, missing + (held ?? 0))
    },
    endMissing: () => {
      for (const key of leaving.keys()) remove(key)
      isMissing = true
    },
    select: () => void selected++,
    unanswered: (letter) => void unconfirmed.add(keyOf(letter)),
    leaves: (letter, error, isLost = false) => {
      const key = keyOf(letter)
      leaving.set(key, { id: letter.metadata.id, isPublished: true, error })
      if (isLost) lost.add(key)
      else lost.delete(key)
    },
    remove: (letter) => remove(keyOf(letter)),
    lost: () => lost.size,
    progress: () => judged + left + removed,
    refuse: ({ metadata }, error) => {
      selected--
      if (++refused <= failuresLimit) refusals.push({ id: metadata.id, isPublished: false, error })
      return refused === failuresLimit && removed === 0 && leaving.size === 0
    },
    wanted: () => Math.max(0, Math.min((found ?? Number.POSITIVE_INFINITY) - judged, limit - selected)),
    summary: () => ({
      selected,
      removed,
      unremoved: leaving.size,
      refused,
      unconfirmed: unconfirmed.size,
      failures: [...refusals, ...[...leaving.values()].slice(0, failuresLimit)],
      queued: isMissing ? 0 : found === undefined ? undefined : Math.max(found, judged) - removed,
      held
    })
  }
}
