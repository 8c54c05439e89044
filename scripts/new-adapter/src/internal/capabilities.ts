/** The capabilities of Acme. The conformance suite tests each claim, and each denied one for its absence. */
import { type Capabilities, Delay } from "@requeue/core/port"

/** Cite the page of the broker's documentation for each value that is not the most modest one. */
export const capabilities: Capabilities.Capabilities = {
  broker: "acme",
  retryDelay: { native: Delay.max, beyond: undefined },
  sendDelay: { native: Delay.max, beyond: undefined },
  delayResolution: 1,
  durableDelays: false,
  durableMessages: false,
  uncountedRelease: false,
  headers: true,
  historyOnRetry: true,
  maxBodySize: 1024 * 1024,
  connectionBound: true, // unleased
  connectionBound: false, // leased
  lease: undefined, // unleased
  lease: { duration: 30_000, max: Number.POSITIVE_INFINITY }, // leased
  ordered: false,
  settleBatch: 1,
  settleWait: 0,
  counts: { ready: true, inFlight: true, delayed: true },
  exactCounts: false,
  uncountedBrowse: false
}
