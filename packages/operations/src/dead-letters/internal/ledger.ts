/** The ledger of a redrive: the outcome of its letters, over all passes through the queue. */
import { type FailedLetter, failuresLimit, nothing, type Summary } from "./sweepStats.ts"
import type { Returned } from "./returned.ts"
import type { Outcome, Report, Stage, StoppedBy } from "./report.ts"

/** Why a letter is passed over. */
export type PassedOver = "filtered" | "overRedriveLimit" | "unknownOrigin" | "repeated"

/** The facts about published letters that the ledger gets from outside. */
export interface Seen {
  /** The messages that the broker counts where letters were redriven to; `undefined` if it does not count all. */
  readonly counted: number | undefined
  readonly unseen: number
}

export interface Ledger {
  /** Begins a stage of this size; `undefined` for the rest. */
  readonly begin: (size: number | undefined) => void
  /** Ends a stage. Call it when all letters of the stage have been published. */
  readonly close: () => void
  /** The number of the stage, from 1. */
  readonly stage: () => number
  /** Begins another pass through the queue. */
  readonly pass: () => void
  readonly passOver: (why: PassedOver) => void
  /** Sets the current counts of this pass. */
  readonly step: (summary: Summary) => void
  /** Returns the number of published letters. */
  readonly published: () => number
  /** Returns the number of published letters that are not known to have come back. */
  readonly outstanding: () => number
  /**
   * Whether more than this share of any stage has come back. While a stage publishes, its planned size counts. The size of
   * the last stage is the number published so far, and at least the size of the stage before. `unseen` letters count as
   * letters of the current stage.
   */
  readonly isBeyond: (part: number, unseen: number) => boolean
  /** Sets what is known now about the published letters. */
  readonly see: (seen: Seen) => void
  readonly report: (stoppedBy?: StoppedBy) => Report
}

/** Adds the counts of two passes. The number of letters that are left comes from the last pass that counted. */
const plus = (first: Summary, next: Summary): Summary => {
  if (first === nothing) return next
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

/**
 * Distributes letters over stages. It is unknown which letters wait or were not seen, so the last stages get them, which
 * have waited for the shortest time.
 */
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

export interface Options {
  readonly operation: string
  readonly isDryRun: boolean
  /** The letters that have come back; `undefined` if the redrive does not watch. */
  readonly comeBacks: Returned | undefined
}

/** The recorded facts. All figures follow from them and from the letters that have come back. */
interface State {
  /** Each stage with the number of letters that had been published before it. */
  readonly begun: ReadonlyArray<{ readonly size: number | undefined; readonly before: number }>
  /** Whether the last stage still publishes. */
  readonly isOpen: boolean
  /** The counts of earlier passes, and of this one. */
  readonly past: Summary
  readonly now: Summary
  /** The letters of this pass that were passed over. */
  readonly passed: Readonly<Record<PassedOver, number>>
  /** The latest facts, with the number of letters published by then; and the most that were known to have succeeded. */
  readonly seen: Seen & { readonly published: number; readonly succeeded: number }
}

const passedNone: State["passed"] = { filtered: 0, overRedriveLimit: 0, unknownOrigin: 0, repeated: 0 }

const initial: State = {
  begun: [],
  isOpen: false,
  past: nothing,
  now: nothing,
  passed: passedNone,
  seen: { counted: 0, unseen: 0, published: 0, succeeded: 0 }
}

const publishedOf = ({ now, past }: State): number => past.removed + past.unremoved + now.removed + now.unremoved

const stagesOf = (state: State, comeBacks: Returned | undefined): ReadonlyArray<Published> =>
  state.begun.map(({ before, size }, index) => {
    const published = (state.begun[index + 1]?.before ?? publishedOf(state)) - before
    const cameBack = comeBacks?.of(index + 1)
    return { size, published, cameBack, out: Math.max(0, published - (cameBack ?? 0)) }
  })

/**
 * Returns an upper bound of the waiting letters. All letters published since the last count may wait. Letters that
 * succeeded do not, whatever other messages are in the queue.
 */
const waitingOf = (published: number, out: number, { seen }: State): number | undefined => {
  if (out === 0) return 0
  if (seen.counted === undefined) return undefined
  return Math.max(0, Math.min(out, seen.counted + published - seen.published, out - seen.succeeded - seen.unseen))
}

export const make = ({ comeBacks, isDryRun, operation }: Options): Ledger => {
  let state = initial
  const change = (by: Partial<State>): void => void (state = { ...state, ...by })

  const published = (): number => publishedOf(state)
  const stages = (): ReadonlyArray<Published> => stagesOf(state, comeBacks)
  const outstanding = (): number => stages().reduce((sum, { out }) => sum + out, 0)
  const waiting = () => (comeBacks === undefined ? undefined : waitingOf(published(), outstanding(), state))

  return {
    begin: (size) => change({ begun: [...state.begun, { size, before: published() }], isOpen: true }),
    stage: () => state.begun.length,
    close: () => change({ isOpen: false }),
    pass: () => change({ past: plus(state.past, state.now), now: nothing, passed: passedNone }),
    passOver: (why) => change({ passed: { ...state.passed, [why]: state.passed[why] + 1 } }),
    step: (now) => change({ now }),
    published,
    outstanding,
    isBeyond: (part, unseen) =>
      stages().some(({ cameBack = 0, published, size }, index, all) => {
        const isLast = index === all.length - 1
        const planned = isLast && state.isOpen ? (size ?? all[index - 1]?.size ?? 1) : 0
        return cameBack + (isLast ? unseen : 0) > part * Math.max(published, planned)
      }),
    see: (facts) => {
      const { succeeded } = state.seen
      change({ seen: { ...facts, published: published(), succeeded } })
      const left = waiting()
      if (left === undefined) return
      change({ seen: { ...state.seen, succeeded: Math.max(succeeded, outstanding() - left - facts.unseen) } })
    },
    report: (stoppedBy) => {
      const { removed, selected, ...books } = plus(state.past, state.now)
      const { unseen } = state.seen
      return {
        operation,
        redriven: isDryRun ? selected : removed,
        ...outcome(published(), comeBacks?.all(), outstanding(), waiting(), unseen),
        ...state.passed,
        ...books,
        stoppedBy,
        stages: comeBacks === undefined ? [] : shared(stages(), waiting(), unseen)
      }
    }
  }
}
