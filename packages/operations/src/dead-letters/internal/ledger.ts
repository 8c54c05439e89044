/** The ledger of a redrive: the outcome of its letters, over all passes through the queue. */
import { type FailedLetter, failuresLimit, nothing, type Summary } from "./sweepStats.ts"
import type { Returned } from "./returned.ts"
import type { Outcome, Report, Stage, StoppedBy } from "./report.ts"

/** Why a letter is passed over. */
export type PassedOver = "filtered" | "overRedriveLimit" | "unknownOrigin" | "repeated"

/** The facts that the ledger needs from outside. */
export interface Seen {
  /** The messages that the broker counts where letters were redriven to; `undefined` if it does not count all. */
  readonly counted: number | undefined
  readonly unseen: number
}

export interface Ledger {
  /** Begins a stage of this size; `undefined` for the rest. */
  readonly begin: (size: number | undefined) => void
  /** Call it when all letters of the stage have been published. */
  readonly close: () => void
  /** The number of the stage, from 1. */
  readonly stage: () => number
  /** Begins another pass through the queue. */
  readonly pass: () => void
  readonly passOver: (why: PassedOver) => void
  /** Sets the current counts of this pass. */
  readonly step: (summary: Summary) => void
  /** Letters that were published. */
  readonly published: () => number
  /** Letters that were published, and that are not known to have come back. */
  readonly outstanding: () => number
  /**
   * Whether more than this share of any stage has come back. While a stage publishes, its size is its planned one; that
   * of the last one is the number published so far, at least the size of the stage before. `unseen` count as letters of this stage.
   */
  readonly isBeyond: (part: number, unseen: number) => boolean
  /** Sets what is known now about the published letters. */
  readonly see: (seen: Seen) => void
  readonly report: (stoppedBy?: StoppedBy) => Report
}

/** The sum of the counts of two passes. What is left is known from the last one that counted. */
const plus = (first: Summary, next: Summary): Summary => {
  const failures = [...first.failures, ...next.failures]
  const some = (isPublished: boolean): ReadonlyArray<FailedLetter> =>
    failures.filter((failed) => failed.isPublished === isPublished).slice(0, failuresLimit)
  return {
    selected: first.selected + next.selected,
    removed: first.removed + next.removed,
    unremoved: first.unremoved + next.unremoved,
    refused: first.refused + next.refused,
    unconfirmed: first.unconfirmed + next.unconfirmed,
    failures: [...some(false), ...some(true)],
    ...(next.queued === undefined
      ? { queued: first.queued, held: first.held }
      : { queued: next.queued, held: next.held })
  }
}

const outcome = (
  published: number,
  cameBack: number | undefined,
  outstanding: number,
  waiting: number | undefined,
  unseen: number
): Outcome => ({
  published,
  succeeded: waiting === undefined ? undefined : Math.max(0, outstanding - waiting - unseen),
  cameBack,
  waiting,
  unseen
})

interface Published {
  readonly size: number | undefined
  readonly published: number
  readonly cameBack: number | undefined
  /** Letters that are not known to have come back. */
  readonly out: number
}

/** It is unknown which letters wait, or were not seen: assume those of the last stages, which have waited for the shortest time. */
const shared = (
  stages: ReadonlyArray<Published>,
  counted: number | undefined,
  unseen: number
): ReadonlyArray<Stage> => {
  let [left, hidden] = [counted, unseen]
  const all: Array<Stage> = []
  for (const { cameBack, out, published, size } of stages.toReversed()) {
    const waiting = out === 0 ? 0 : left === undefined ? undefined : Math.min(out, left)
    const lost = Math.min(hidden, out - (waiting ?? 0))
    left = left === undefined || waiting === undefined ? undefined : left - waiting
    hidden -= lost
    if (published > 0) all.unshift({ size, ...outcome(published, cameBack, out, waiting, lost) })
  }
  return all
}

interface Begun {
  readonly size: number | undefined
  /** Letters that had been published before it. */
  readonly before: number
  isClosed: boolean
}

export interface Options {
  readonly operation: string
  readonly isDryRun: boolean
  /** The letters that have come back; `undefined` if the redrive does not watch. */
  readonly comeBacks: Returned | undefined
}

export const make = ({ comeBacks, isDryRun, operation }: Options): Ledger => {
  const stages: Array<Begun> = []
  let past: Summary | undefined
  let now: Summary | undefined
  /** The latest facts, with the number of letters published by then; and the most that were known to have succeeded. */
  let last: Seen & { readonly published: number } = { counted: 0, unseen: 0, published: 0 }
  let best = 0
  let passed = { filtered: 0, overRedriveLimit: 0, unknownOrigin: 0, repeated: 0 }

  const total = (): Summary => (past === undefined ? (now ?? nothing) : now === undefined ? past : plus(past, now))
  const published = (): number => {
    const { removed, unremoved } = total()
    return removed + unremoved
  }
  const publishedIn = (index: number): number => (stages[index + 1]?.before ?? published()) - stages[index]!.before
  const outstandingIn = (index: number): number => Math.max(0, publishedIn(index) - (comeBacks?.of(index + 1) ?? 0))
  const outstanding = (): number => stages.reduce((sum, _, index) => sum + outstandingIn(index), 0)

  /**
   * An upper bound of the waiting letters. All that were published since the last count may wait, and those that succeeded do not,
   * whatever other messages are in the queue.
   */
  const waitingNow = (): number | undefined => {
    const out = outstanding()
    if (comeBacks === undefined) return undefined
    if (out === 0) return 0
    if (last.counted === undefined) return undefined
    const most = last.counted + published() - last.published
    return Math.max(0, Math.min(out, most, out - best - last.unseen))
  }

  const all = (): ReadonlyArray<Published> =>
    stages.map(({ size }, index) => ({
      size,
      published: publishedIn(index),
      cameBack: comeBacks?.of(index + 1),
      out: outstandingIn(index)
    }))

  return {
    begin: (size) => void stages.push({ size, before: published(), isClosed: false }),
    stage: () => stages.length,
    close: () => void (stages.at(-1)!.isClosed = true),
    pass: () => {
      if (now !== undefined) past = total()
      now = undefined
      passed = { filtered: 0, overRedriveLimit: 0, unknownOrigin: 0, repeated: 0 }
    },
    passOver: (why) => void passed[why]++,
    step: (summary) => void (now = summary),
    published,
    outstanding,
    isBeyond: (part, unseen) =>
      stages.some(({ isClosed, size }, index) => {
        const isLast = index === stages.length - 1
        const atLeast = isClosed ? 0 : (size ?? stages[index - 1]?.size ?? 1)
        const base = Math.max(publishedIn(index), atLeast)
        return (comeBacks?.of(index + 1) ?? 0) + (isLast ? unseen : 0) > part * base
      }),
    see: (seen) => {
      last = { ...seen, published: published() }
      const waiting = waitingNow()
      if (waiting !== undefined) best = Math.max(best, outstanding() - waiting - seen.unseen)
    },
    report: (stoppedBy) => {
      const { removed, selected, ...books } = total()
      const { unseen } = last
      const waiting = waitingNow()
      return {
        operation,
        redriven: isDryRun ? selected : removed,
        ...outcome(published(), comeBacks?.all(), outstanding(), waiting, unseen),
        ...passed,
        ...books,
        stoppedBy,
        stages: comeBacks === undefined ? [] : shared(all(), waiting, unseen)
      }
    }
  }
}
