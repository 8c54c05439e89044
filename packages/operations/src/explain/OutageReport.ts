/** A summary of many simulated outages. */
import type { ConsumerBackoff } from "@requeue/core"
import type { Outcome, Scenario } from "./Outage.ts"
import * as Range from "./internal/range.ts"

export type { Range } from "./internal/range.ts"

/** The summary. Times are in milliseconds. */
export interface OutageReport {
  /** Messages a second. */
  readonly rate: number
  /** The length of the outage. */
  readonly length: number
  /** The share of handler runs that fail during the outage. */
  readonly share: number
  readonly handlerTime: number
  readonly concurrency: number
  /** The form of the consumer's backoff; `off` if the consumer has none. */
  readonly consumerBackoff: ConsumerBackoff.ConsumerBackoff["form"] | "off"
  readonly seed: number
  readonly rounds: number
  readonly messages: Range.Range
  readonly deadLetters: Range.Range
  readonly discarded: Range.Range
  readonly runsPerMessage: Range.Range
  readonly peakBacklog: Range.Range
  /** The time to recover, in the rounds that recovered; `null` if none did. */
  readonly recovery: Range.Range | null
  /** The number of rounds that did not recover. */
  readonly unrecovered: number
  /** The number of rounds that ended early, because they had too many events. */
  readonly cut: number
  /** The number of redeliveries of all messages together. */
  readonly retries: Range.Range
  /** The largest number of handler runs a second in any slice of time. */
  readonly peakLoad: Range.Range
  /** For each slice of time of the first round: the largest backlog, and the number of handler runs that began. */
  readonly backlog: {
    readonly slice: number
    readonly values: ReadonlyArray<number>
    readonly runs: ReadonlyArray<number>
  }
}

/** Summarises one or more outcomes. */
export const make = (scenario: Scenario, outcomes: ReadonlyArray<Outcome>): OutageReport => {
  const of = (value: (outcome: Outcome) => number): Range.Range => Range.of(outcomes.map(value))
  const recovered = outcomes.flatMap(({ recovery }) => (recovery === undefined ? [] : [recovery]))
  const [first] = outcomes
  return {
    rate: scenario.rate,
    length: scenario.outage,
    share: scenario.share ?? 1,
    handlerTime: scenario.handlerTime,
    concurrency: scenario.concurrency,
    consumerBackoff: scenario.consumerBackoff.maxBackoffDuration === 0 ? "off" : scenario.consumerBackoff.form,
    seed: scenario.seed,
    rounds: outcomes.length,
    messages: of(({ arrived }) => arrived),
    deadLetters: of(({ deadLettered }) => deadLettered),
    discarded: of(({ discarded }) => discarded),
    runsPerMessage: of(({ arrived, handlerRuns, left }) => handlerRuns / Math.max(1, arrived - left)),
    peakBacklog: of(({ peakBacklog }) => peakBacklog),
    recovery: recovered.length === 0 ? null : Range.of(recovered),
    unrecovered: outcomes.length - recovered.length,
    cut: outcomes.filter(({ isCut }) => isCut).length,
    retries: of(({ retries }) => retries),
    peakLoad: of(({ load, slice }) => (1000 * load.reduce((most, runs) => Math.max(most, runs), 0)) / slice),
    backlog: { slice: first?.slice ?? 0, values: first?.backlog ?? [], runs: first?.load ?? [] }
  }
}
