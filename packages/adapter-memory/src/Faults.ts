/**
 * Imitated defects and limits of real brokers, for tests.
 *
 * When to use: to prove that your code survives the behaviour of your production broker, without running that broker. All
 * defects are disabled by default. The broker's `capabilities` report those that you enable.
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 *
 * // Looks like SQS: leases, no delay over 15 minutes, whole seconds.
 * const layer = MemoryBroker.layer({
 *   faults: {
 *     lease: { duration: 30_000, max: 43_200_000 },
 *     capabilities: { sendDelay: { native: 900_000, beyond: undefined }, delayResolution: 1000 }
 *   }
 * })
 * ```
 */
import type { Capabilities } from "@requeue/core/port"

/**
 * Capabilities that replace the memory broker's own, and how it then behaves:
 *
 * | capability | behaviour |
 * | --- | --- |
 * | `retryDelay`, `sendDelay` | a delay over `native` fails with `Unsupported` if `beyond` is `undefined`; otherwise the broker keeps the delay |
 * | `delayResolution` | delays are rounded up to whole multiples of this value |
 * | `uncountedRelease: false` | a `Release` counts as an attempt |
 * | `headers: false` | a foreign producer's headers are lost; Requeue's headers travel in its envelope |
 * | `historyOnRetry: false` | a retry does not change the metadata: no history, no new `notBefore` |
 * | `maxBodySize` | a larger body fails with `BodyTooLarge` |
 * | `lease` | the same as {@link Faults.lease} |
 * | `connectionBound: false` | `Control.cut` changes nothing: deliveries last as long as their lease |
 * | `counts` | a count that is `false` is reported as `undefined` |
 * | `uncountedBrowse: false` | a message that a browser returns has used up an attempt |
 * | `delayedMessages: false` | delayed messages cannot be browsed |
 * | `transactions: false` | `within` fails with `Unsupported` |
 *
 * All other capabilities are promises about crashes, order and batches. They change what the broker claims, not its
 * behaviour, because a broker that keeps a promise also keeps a weaker one.
 */
export type CapabilityOverrides = Partial<Omit<Capabilities.Capabilities, "broker">>

/** The defects to imitate. */
export interface Faults {
  /** A `Release` counts as an attempt, as on SQS. Default: false. */
  readonly countReleases?: boolean | undefined
  /** A lost connection or lease counts one attempt too many, as a crashed broker may. Default: false. */
  readonly overCountOnLoss?: boolean | undefined
  /** Milliseconds by which delayed messages arrive early, with an unchanged `metadata.notBefore`. Default: 0. */
  readonly earlyBy?: number | undefined
  /** `Control.restart` delivers every delayed message at once, as a restarted nsqd does. Default: false. */
  readonly forgetDelaysOnRestart?: boolean | undefined
  /** Every nth `publish` stores its messages and then fails with `Timeout`. Default: 0, never. */
  readonly duplicateOnLostConfirmation?: number | undefined
  /**
   * Every `every`th settlement fails and has no effect. After `ConnectionLost` the consumer keeps the delivery until
   * `Control.cut` or the end of the subscription; after `LeaseLost` the message is in its queue again. Default: never.
   */
  readonly failSettle?: { readonly every: number; readonly reason: "ConnectionLost" | "LeaseLost" } | undefined
  /**
   * How long a delivery belongs to its consumer, in milliseconds; then the message returns to its queue. Default: no lease.
   */
  readonly lease?: Capabilities.Lease | undefined
  /** Capabilities to imitate. Default: none. */
  readonly capabilities?: CapabilityOverrides | undefined
}
