/** Counts: the figures of a queue that a broker can report at any time. */
import type { BrokerError } from "./BrokerError.ts"

/** The number of messages in a queue by state; `undefined` where the broker cannot report it. */
export interface Counts {
  /** Messages that wait for a consumer. */
  readonly ready: number | undefined
  /** Messages that are delivered and not settled. */
  readonly inFlight: number | undefined
  /** Messages that wait for their delay to pass. */
  readonly delayed: number | undefined
  /** Messages that wait for an earlier message of their key; `undefined` if there are none, or the broker cannot report it. */
  readonly blocked?: number | undefined
  /**
   * Whether a consumer or a browser may hold messages, for brokers that report this but not `inFlight`. Default: read
   * `inFlight` instead.
   */
  readonly isRead?: boolean | undefined
  /**
   * Whether the queue is missing; counting does not create it. Default: false, or unknown if the capability
   * `tellsMissing` is false.
   */
  readonly isMissing?: boolean | undefined
  /** Whether an operator has paused the queue: the broker delivers none of its messages. Default: false. */
  readonly isPaused?: boolean | undefined
  /** The errors of the parts of the broker that did not answer. The figures do not include these parts. Default: none. */
  readonly missing?: ReadonlyArray<BrokerError> | undefined
}
