/** What SQS can honour. */
import type { Capabilities } from "@requeue/core/adapter-kit"
import type { Settings } from "../SqsOptions.ts"
import { longestHide } from "./settle/toCommand.ts"
import * as Wire from "./wire.ts"

export const make = ({ visibilityTimeout }: Settings): Capabilities.Capabilities => ({
  broker: "sqs",
  retryDelay: { native: longestHide, beyond: "delayed copies, one every 15 minutes, while a consumer runs" },
  sendDelay: { native: Wire.longestDelay, beyond: "delayed copies, one every 15 minutes, while a consumer runs" },
  delayResolution: 1000,
  durableDelays: true,
  durableMessages: true,
  uncountedRelease: false,
  headers: true,
  historyOnRetry: false,
  maxBodySize: Wire.maxBodySize,
  connectionBound: false,
  lease: { duration: visibilityTimeout, max: longestHide },
  ordered: false,
  settleBatch: Wire.batchLimit,
  settleWait: 20,
  counts: { ready: true, inFlight: true, delayed: true },
  exactCounts: false,
  peek: false
})
