/**
 * Switches that make the memory broker behave as badly as real brokers do, for tests.
 *
 * When to use: to prove that your own code survives what your production broker does to it, without running that
 * broker. All are off by default; the broker's `capabilities` tell the truth about those that are on.
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
 * Overridden capabilities, and how the broker then behaves:
 *
 * | capability | behaviour |
 * | --- | --- |
 * | `retryDelay`, `sendDelay` | a delay over `native` fails with `Unsupported` when `beyond` is `undefined`; else it is kept |
 * | `delayResolution` | delays are rounded up to whole multiples of it |
 * | `uncountedRelease: false` | a `Release` counts as an attempt |
 * | `headers: false` | a foreign producer's headers are lost; Requeue's own travel in its envelope |
 * | `historyOnRetry: false` | a retry leaves the metadata as it was: no history, no new `notBefore` |
 * | `maxBodySize` | a larger body fails with `BodyTooLarge` |
 * | `lease` | as {@link Faults.lease} |
 * | `connectionBound: false` | `Control.cut` changes nothing: deliveries last as long as their lease |
 * | `counts` | a number that the broker cannot tell is `undefined` |
 * | `uncountedBrowse: false` | a message that a browser returns has used up an attempt |
 * | `delayedMessages: false` | messages that wait for their delay cannot be shown |
 *
 * The others are promises about crashes, order and batches. They change the broker's claims, and not its behaviour,
 * since a broker that keeps a promise keeps a weaker one as well.
 */
export type CapabilityOverrides = Partial<Omit<Capabilities.Capabilities, "broker">>

/** The switches. */
export interface Faults {
  /** A `Release` counts as an attempt, as on SQS. Default: false. */
  readonly countReleases?: boolean | undefined
  /** A lost connection or lease counts one attempt too many, as a crashed broker may. Default: false. */
  readonly overCountOnLoss?: boolean | undefined
  /** Milliseconds that delayed messages come before their time, with `metadata.notBefore` as it was. Default: 0. */
  readonly earlyBy?: number | undefined
  /** `Control.restart` delivers every delayed message at once, as a restarted nsqd does. Default: false. */
  readonly forgetDelaysOnRestart?: boolean | undefined
  /** Every nth call of `publish` stores its messages and then fails with `Timeout`. Default: 0, never. */
  readonly duplicateOnLostConfirmation?: number | undefined
  /**
   * Of all settlements, every `every`th fails and has no effect. After `ConnectionLost` the delivery is still ours
   * until `Control.cut` or the end of the subscription; after `LeaseLost` it is back in its queue. Default: never.
   */
  readonly failSettle?: { readonly every: number; readonly reason: "ConnectionLost" | "LeaseLost" } | undefined
  /** Deliveries have a lease, in milliseconds; when it ends, the message goes back to its queue. Default: none. */
  readonly lease?: Capabilities.Lease | undefined
  /** Capabilities that the broker claims, and keeps, instead of its own. Default: none. */
  readonly capabilities?: CapabilityOverrides | undefined
}
