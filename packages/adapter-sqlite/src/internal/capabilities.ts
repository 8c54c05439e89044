/** The capabilities of SQLite. The conformance suite tests each claim, and each denied one for its absence. */
import { type Capabilities, Delay } from "@requeue/core/port"
import { memory, type Settings } from "../SqliteOptions.ts"

/** The largest body, in bytes. SQLite itself stores up to a gigabyte, but blocks the event loop meanwhile. */
const maxBodySize = 16 * 2 ** 20

/** Returns the capabilities of a file, or of a database without one. */
export const make = ({ durability, lease, path }: Settings): Capabilities.Capabilities => {
  const isDurable = path !== memory && durability === "full"
  return {
    broker: "sqlite",
    retryDelay: { native: Delay.max, beyond: undefined },
    sendDelay: { native: Delay.max, beyond: undefined },
    delayResolution: 1,
    durableDelays: isDurable,
    durableMessages: isDurable,
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
    // No other connection can open a database without a file.
    transactions: path !== memory
  }
}
