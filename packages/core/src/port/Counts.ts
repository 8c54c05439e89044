/** Counts: what a broker tells of a queue at any time. */
import type { BrokerError } from "./BrokerError.ts"

/** The number of messages in a queue, by their state; `undefined` where the broker cannot tell. */
export interface Counts {
  /** Messages that wait for a consumer. */
  readonly ready: number | undefined
  /** Messages that are delivered and not settled. */
  readonly inFlight: number | undefined
  /** Messages that wait for their delay to pass. */
  readonly delayed: number | undefined
  /**
   * Whether a consumer, or a look, may have messages of the queue, where the broker tells that more exactly than their
   * number. Default: `inFlight` says it.
   */
  readonly isRead?: boolean | undefined
  /** Whether the broker has no such queue; to count makes none. Default: it has one, or cannot tell (`tellsMissing`). */
  readonly isMissing?: boolean | undefined
  /** Whether an operator has paused the queue, so that the broker gives its messages to no consumer. Default: false. */
  readonly isPaused?: boolean | undefined
  /** Why parts of the broker, each with its error, have not answered; the numbers are those of the others. Default: none. */
  readonly missing?: ReadonlyArray<BrokerError> | undefined
}
