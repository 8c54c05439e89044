/** The capabilities of PostgreSQL. The conformance suite tests that each of them exists, and that all others are absent. */
import { type Capabilities, Delay } from "@requeue/core/port"
import type { Settings } from "../PostgresOptions.ts"

/** The largest body, in bytes. PostgreSQL itself stores up to a gigabyte, but the driver holds each several times in memory. */
const maxBodySize = 16 * 2 ** 20

export const make = ({ lease }: Pick<Settings, "lease">): Capabilities.Capabilities => ({
  broker: "postgres",
  retryDelay: { native: Delay.max, beyond: undefined },
  sendDelay: { native: Delay.max, beyond: undefined },
  delayResolution: 1,
  durableDelays: true,
  durableMessages: true,
  uncountedRelease: true,
  headers: true,
  historyOnRetry: true,
  maxBodySize,
  connectionBound: false,
  lease: { duration: lease, max: Number.POSITIVE_INFINITY },
  ordered: true,
  settleBatch: 100,
  settleWait: 0,
  counts: { ready: true, inFlight: true, delayed: true },
  tellsMissing: true,
  exactCounts: true,
  uncountedBrowse: true,
  delayedMessages: true,
  keyedOrder: true,
  parkedKeys: true,
  fairShares: true,
  transactions: true
})
