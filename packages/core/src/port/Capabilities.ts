/**
 * What a broker can honour, as a value on its adapter: read by the core when a consumer is built, by the conformance
 * suite to choose its cases, and by users.
 */
import * as Delay from "../message/Delay.ts"

/** How far a delay reaches. */
export interface DelayReach {
  /** The longest delay that the broker keeps by itself, in milliseconds. */
  readonly native: number
  /** How longer ones, up to 24 hours, are kept; `undefined` when they cannot be. */
  readonly beyond: string | undefined
}

/** A delivery's lease: when it ends, the broker hands the message to somebody else. */
export interface Lease {
  /** Milliseconds that one delivery may go unsettled without being extended. */
  readonly duration: number
  /** Milliseconds from delivery beyond which it cannot be extended; `Infinity` when there is no such limit. */
  readonly max: number
}

export interface Capabilities {
  /** The adapter's name: `memory`, `rabbitmq`, `nsq`, `sqs`. */
  readonly broker: string
  readonly retryDelay: DelayReach
  readonly sendDelay: DelayReach
  /** How late a due message may be by the broker's own clockwork, in milliseconds. */
  readonly delayResolution: number
  /** Whether a pending delay survives a crash of the broker. */
  readonly durableDelays: boolean
  /** Whether an accepted message survives a crash of the broker. */
  readonly durableMessages: boolean
  /** Whether a `Release` leaves the attempts as they were. */
  readonly uncountedRelease: boolean
  /** Whether the broker carries text headers of any producer. */
  readonly headers: boolean
  /** Whether the history of failed attempts survives every retry; else only those that are made by copy. */
  readonly historyOnRetry: boolean
  /** The largest body in bytes. */
  readonly maxBodySize: number
  /**
   * Whether deliveries end with the connection that brought them: they come back, and `onReconnect` is called. Else they
   * are ours until their lease ends, whatever becomes of connections.
   */
  readonly connectionBound: boolean
  /** `undefined` when a delivery is ours for as long as the connection lives. */
  readonly lease: Lease | undefined
  /** Whether undelayed messages come in the order in which they were published. */
  readonly ordered: boolean
  /**
   * Settlements that one call of the broker can carry; the core gathers up to so many for `settleWait` milliseconds. The
   * adapter still splits what is more: a large batch that ends is settled in one go.
   */
  readonly settleBatch: number
  readonly settleWait: number
  /** Which of a queue's numbers the broker can tell. */
  readonly counts: { readonly ready: boolean; readonly inFlight: boolean; readonly delayed: boolean }
  /** Whether the counts are exact at any moment. */
  readonly exactCounts: boolean
  /** Whether looking at messages leaves them and their attempts untouched. */
  readonly peek: boolean
}

/** The longest delay of a retry that the broker honours, natively or otherwise. */
export const longestRetry = ({ retryDelay }: Capabilities): Delay.Delay =>
  retryDelay.beyond === undefined ? Math.min(retryDelay.native, Delay.max) : Delay.max

/** The longest delay of a send that the broker honours, natively or otherwise. */
export const longestSend = ({ sendDelay }: Capabilities): Delay.Delay =>
  sendDelay.beyond === undefined ? Math.min(sendDelay.native, Delay.max) : Delay.max
