/** Memory brokers as badly, and as well, equipped as real ones. */
import type { Options } from "../src/index.ts"
import type { layer } from "./conformanceLayer.ts"

const likeSqs: Options.Options = {
  faults: {
    countReleases: true,
    lease: { duration: 2000, max: 43_200_000 },
    forgetDelaysOnRestart: true,
    capabilities: {
      connectionBound: false,
      delayResolution: 1000,
      exactCounts: false,
      headers: false,
      historyOnRetry: false,
      ordered: false,
      uncountedBrowse: false,
      delayedMessages: false,
      counts: { ready: true, inFlight: true, delayed: false },
      retryDelay: { native: 43_200_000, beyond: undefined },
      sendDelay: { native: 900_000, beyond: undefined },
      settleBatch: 10,
      settleWait: 5,
      transactions: false,
      keyedOrder: false,
      fairShares: false,
      parkedKeys: false
    }
  }
}

export const variants: Readonly<Record<string, Parameters<typeof layer>[0]>> = {
  memory: {},
  "memory like SQS": likeSqs,
  "memory like a database": {
    faults: {
      lease: { duration: 2000, max: 43_200_000 },
      capabilities: { connectionBound: false, durableDelays: true, durableMessages: true, delayResolution: 20 }
    }
  },
  "memory with a store": { store: true },
  "memory like SQS, with a store": { ...likeSqs, store: true }
}
