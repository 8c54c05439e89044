/** The broker's capabilities. All code reads its limits from here, so claims and behaviour agree. */
import { type Capabilities, Delay } from "@requeue/core/port"
import type { Faults } from "../Faults.ts"

/** Returns the capabilities, changed by the faults. `maxBodySize` is in bytes. */
export const make = (maxBodySize: number, faults: Faults): Capabilities.Capabilities => ({
  broker: "memory",
  retryDelay: { native: Delay.max, beyond: undefined },
  sendDelay: { native: Delay.max, beyond: undefined },
  delayResolution: 1,
  durableDelays: false,
  durableMessages: false,
  uncountedRelease: faults.countReleases !== true,
  headers: true,
  historyOnRetry: true,
  maxBodySize,
  connectionBound: true,
  lease: faults.lease,
  ordered: true,
  settleBatch: 1,
  settleWait: 0,
  counts: { ready: true, inFlight: true, delayed: true },
  tellsMissing: true,
  exactCounts: true,
  uncountedBrowse: true,
  delayedMessages: true,
  transactions: true,
  keyedOrder: true,
  parkedKeys: true,
  fairShares: true,
  ...faults.capabilities
})
