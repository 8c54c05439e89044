/**
 * The broker's capabilities. All code that one of them limits reads it from here, so that claim and behaviour agree.
 */
import { type Capabilities, Delay } from "@requeue/core/port"
import type { Faults } from "../Faults.ts"

/** The capabilities, as the faults change them. `maxBodySize` is in bytes. */
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
  ...faults.capabilities
})
