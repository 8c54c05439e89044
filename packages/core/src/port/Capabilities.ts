/**
 * Capabilities: an adapter declares what its broker can do. The core reads them when a consumer is built, the conformance
 * suite chooses its cases by them, and users can read them.
 */
import * as Delay from "../message/Delay.ts"

/** The delays that a broker can keep. */
export interface DelayReach {
  /** The longest delay that the broker keeps by itself, in milliseconds. */
  readonly native: number
  /** How longer delays, up to 24 hours, are kept, in words; `undefined` when they cannot be. */
  readonly beyond: string | undefined
}

/** The lease of a delivery. When it ends, the broker delivers the message again. */
export interface Lease {
  /** Length of a lease that is not extended, in milliseconds. */
  readonly duration: number
  /** Longest time from the delivery to the end of its lease, in milliseconds; `Infinity` for no limit. */
  readonly max: number
}

/** The capabilities of a broker. */
export interface Capabilities {
  /** The broker's name, for example `memory`, `rabbitmq`, `nsq` or `sqs`. */
  readonly broker: string
  /** The delays of retries. */
  readonly retryDelay: DelayReach
  /** The delays of messages that are sent. */
  readonly sendDelay: DelayReach
  /** How late a due message may be because the broker's own timers are coarse, in milliseconds. */
  readonly delayResolution: number
  /** Whether a pending delay survives a crash of the broker. */
  readonly durableDelays: boolean
  /** Whether an accepted message survives a crash of the broker. */
  readonly durableMessages: boolean
  /** Whether a delivery that is given back by `Release` does not count as an attempt in other processes either. */
  readonly uncountedRelease: boolean
  /** Whether messages of any producer can have text headers. */
  readonly headers: boolean
  /** Whether the history has every failed attempt. Else it lacks those whose retry gave the original back. */
  readonly historyOnRetry: boolean
  /** The largest body, in bytes. */
  readonly maxBodySize: number
  /**
   * Bytes of the largest body that the broker may take, by its content; the adapter refuses what it cannot. Default:
   * `maxBodySize`.
   */
  readonly maxTextSize?: number | undefined
  /**
   * Whether a delivery ends with the connection that brought it: its message is delivered again, and `onReconnect` is
   * called. Else it lasts until its lease ends, whatever becomes of connections.
   */
  readonly connectionBound: boolean
  /** The lease of deliveries; `undefined` when they last as long as their connection. */
  readonly lease: Lease | undefined
  /**
   * Whether messages without a delay are delivered in the order in which they were published; one that is given back at
   * once comes before those that were published after it.
   */
  readonly ordered: boolean
  /**
   * The number of settlements in one call of the broker, which the core gathers. The adapter must split longer lists: when
   * a large batch ends, the core settles all of it in one call of `settle`.
   */
  readonly settleBatch: number
  /** Milliseconds that a settlement waits for others at most. */
  readonly settleWait: number
  /** Which counts of a queue the broker can tell. */
  readonly counts: { readonly ready: boolean; readonly inFlight: boolean; readonly delayed: boolean }
  /** How to let it tell the counts that it does not tell: a sentence without a full stop. Default: it cannot. */
  readonly countsRemedy?: string | undefined
  /** Whether `delayedAtMost` bounds the delayed messages that `counts` does not tell. Default: false. */
  readonly boundsDelayed?: boolean | undefined
  /** Whether `counts` tells that there is no such queue. Default: false. */
  readonly tellsMissing?: boolean | undefined
  /** Whether the counts are exact at any moment. */
  readonly exactCounts: boolean
  /** Whether `browse` changes neither messages nor their attempts. */
  readonly uncountedBrowse: boolean
  /** Whether `browse` shows messages that wait for their delay. Default: false. */
  readonly delayedMessages?: boolean | undefined
}

/** The longest delay of a retry that the broker keeps, natively or otherwise, in milliseconds. */
export const longestRetry = ({ retryDelay }: Capabilities): Delay.Delay =>
  retryDelay.beyond === undefined ? Math.min(retryDelay.native, Delay.max) : Delay.max

/** The longest delay of a send that the broker keeps, natively or otherwise, in milliseconds. */
export const longestSend = ({ sendDelay }: Capabilities): Delay.Delay =>
  sendDelay.beyond === undefined ? Math.min(sendDelay.native, Delay.max) : Delay.max

/**
 * Why nobody knows what becomes of redriven letters that do not come back, and what would let the broker tell: sentences
 * without a full stop at the end. `undefined` where it tells, and where nothing would let it.
 */
export const untold = ({ broker, countsRemedy }: Pick<Capabilities, "broker" | "countsRemedy">): string | undefined =>
  countsRemedy &&
  `as it is configured, ${broker} does not tell what becomes of redriven letters that do not come back. ${countsRemedy}`
