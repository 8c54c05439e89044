/**
 * Capabilities: what a broker can do, as its adapter declares it. The core reads the capabilities when a consumer is
 * built. The conformance suite selects its cases by them.
 */
import * as Delay from "../message/Delay.ts"

/** The delays that a broker can keep. */
export interface DelayReach {
  /** The longest delay that the broker itself keeps, in milliseconds. */
  readonly native: number
  /** Delays are rounded up to multiples of this many milliseconds. Default: 1. */
  readonly step?: number | undefined
  /** How longer delays, up to 24 hours, are emulated, in words; `undefined` if they are impossible. */
  readonly beyond: string | undefined
}

/** The lease of a delivery. When it ends, the broker redelivers the message. */
export interface Lease {
  /** The length of a lease that is not extended, in milliseconds. */
  readonly duration: number
  /** The longest time from the delivery to the end of its lease, in milliseconds; `Infinity`: no limit. */
  readonly max: number
}

/** Capabilities that messages or consumers can ask for. The core refuses what asks for one that the broker lacks. */
export type Optional = "keyedOrder" | "parkedKeys" | "fairShares"

/** The capabilities of a broker. */
export interface Capabilities {
  /** The broker's name, for example `memory`, `rabbitmq`, `nsq` or `sqs`. */
  readonly broker: string
  /** The delays of retries. */
  readonly retryDelay: DelayReach
  /** The delays of messages that are sent. */
  readonly sendDelay: DelayReach
  /** How late the broker's coarse timers may deliver a due message, in milliseconds. */
  readonly delayResolution: number
  /** Whether a pending delay survives a crash of the broker, and a power cut. */
  readonly durableDelays: boolean
  /** Whether an accepted message survives a crash of the broker, and a power cut. */
  readonly durableMessages: boolean
  /** Whether a delivery returned by `Release` is not counted as an attempt in any process. */
  readonly uncountedRelease: boolean
  /** Whether messages of any producer can have text headers. */
  readonly headers: boolean
  /**
   * Whether the history has every failed attempt. Otherwise it lacks the attempts whose retry returned the original
   * message.
   */
  readonly historyOnRetry: boolean
  /** The largest body, in bytes. */
  readonly maxBodySize: number
  /**
   * The largest body in bytes for content that needs no encoding, such as text. The adapter refuses other bodies above
   * `maxBodySize`. Default: `maxBodySize`.
   */
  readonly maxTextSize?: number | undefined
  /**
   * Whether a delivery ends with its connection: its message is redelivered, and `onReconnect` is called. Otherwise it
   * lasts until its lease ends.
   */
  readonly connectionBound: boolean
  /** The lease of deliveries; `undefined` if they last as long as their connection. */
  readonly lease: Lease | undefined
  /** Whether undelayed messages are delivered in publish order. A message returned without a delay precedes later ones. */
  readonly ordered: boolean
  /**
   * How many settlements the core gathers for one call of `settle`. The adapter must split longer lists, such as the
   * list of a large batch.
   */
  readonly settleBatch: number
  /** How long a settlement may wait for others, in milliseconds. */
  readonly settleWait: number
  /** Which counts of a queue the broker can report. */
  readonly counts: { readonly ready: boolean; readonly inFlight: boolean; readonly delayed: boolean }
  /** How to make the missing counts available: a sentence without a full stop. Default: impossible. */
  readonly countsRemedy?: string | undefined
  /** Whether `delayedAtMost` returns an upper bound of the delayed messages that `counts` cannot count. Default: false. */
  readonly boundsDelayed?: boolean | undefined
  /** Whether `counts` reports a missing queue. Default: false. */
  readonly tellsMissing?: boolean | undefined
  /** Whether the counts are exact at any moment. */
  readonly exactCounts: boolean
  /** Whether `browse` changes neither messages nor their attempts. */
  readonly uncountedBrowse: boolean
  /** Whether `browse` can show delayed messages. Default: false. */
  readonly delayedMessages?: boolean | undefined
  /** Whether messages can be acked and published in a transaction of the broker's database. Default: false. */
  readonly transactions?: boolean | undefined
  /**
   * Whether messages of a queue with the same key are delivered one at a time, in the order of their sends, also through retries.
   * Default: false, and sends with a key are refused.
   */
  readonly keyedOrder?: boolean | undefined
  /** Whether a dead letter can hold up the later messages of its key until it is redriven or removed. Default: false. */
  readonly parkedKeys?: boolean | undefined
  /**
   * Whether consumers get the messages of each `fairBy` in turn, and the broker counts the limits of shares. Default: false, and both are
   * refused.
   */
  readonly fairShares?: boolean | undefined
  /** Why the broker lacks a capability: a sentence without a full stop, for errors. Default: a general reason. */
  readonly obstacles?: { readonly [C in Optional]?: string } | undefined
  /**
   * Whether the transactions are those of another database, whose inbox records the messages. A message whose transaction was
   * committed can then be delivered again, and is acked without an effect. Default: false.
   */
  readonly inbox?: boolean | undefined
}

/** Returns the longest delay of a retry, native or emulated, in milliseconds. */
export const longestRetry = ({ retryDelay }: Capabilities): Delay.Delay =>
  retryDelay.beyond === undefined ? Math.min(retryDelay.native, Delay.max) : Delay.max

/** Returns the longest delay of a send, native or emulated, in milliseconds. */
export const longestSend = ({ sendDelay }: Capabilities): Delay.Delay =>
  sendDelay.beyond === undefined ? Math.min(sendDelay.native, Delay.max) : Delay.max

/**
 * Returns a text for operators: that the broker does not report whether redriven letters were handled, and which option
 * changes that. The last sentence has no full stop. `undefined` if no option is needed, or none helps.
 */
export const untold = ({ broker, countsRemedy }: Pick<Capabilities, "broker" | "countsRemedy">): string | undefined =>
  countsRemedy &&
  `with this configuration, ${broker} does not report whether redriven letters were handled. ${countsRemedy}`
