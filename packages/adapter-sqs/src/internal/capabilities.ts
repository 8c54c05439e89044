/** The capabilities of SQS. */
import type { Capabilities } from "@requeue/core/port"
import type { Settings } from "../SqsOptions.ts"
import * as Limits from "./limits.ts"

/** Returns the capabilities for these settings. */
export const make = ({ fifoRetry, visibilityTimeout }: Settings): Capabilities.Capabilities => ({
  broker: "sqs",
  retryDelay: {
    native: Limits.hide,
    step: 1000,
    beyond: "delayed copies, one every 15 minutes, while a consumer runs"
  },
  sendDelay: {
    native: Limits.sendDelay,
    step: 1000,
    beyond: "delayed copies, one every 15 minutes, while a consumer runs"
  },
  delayResolution: 1000,
  durableDelays: true,
  durableMessages: true,
  uncountedRelease: false,
  headers: true,
  historyOnRetry: false,
  maxBodySize: Limits.bodySize,
  maxTextSize: Limits.size,
  connectionBound: false,
  lease: { duration: visibilityTimeout, max: Limits.hide },
  ordered: false,
  settleBatch: Limits.batch,
  settleWait: 20,
  counts: { ready: true, inFlight: true, delayed: true },
  tellsMissing: true,
  exactCounts: false,
  uncountedBrowse: false,
  // Of FIFO queues: a publish to another one refuses keys.
  keyedOrder: fifoRetry === "block",
  obstacles: {
    keyedOrder: 'with fifoRetry "resend", a retry moves behind the later messages of its key',
    fairShares: "SQS itself divides a standard queue among the groups in the header message-group-id"
  }
})
