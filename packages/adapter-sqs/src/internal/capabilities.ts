/** The capabilities of SQS. */
import type { Capabilities } from "@requeue/core/port"
import type { Settings } from "../SqsOptions.ts"
import * as Limits from "./limits.ts"

/** Why messages with `fairBy` are refused. */
export const shareless = {
  broker: "sqs",
  fairSharesObstacle: "SQS itself divides a standard queue among the groups in the header message-group-id"
}

/** Returns the capabilities for these settings. */
export const make = ({ fifoRetry, visibilityTimeout }: Settings): Capabilities.Capabilities => ({
  ...shareless,
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
  ...(fifoRetry === "block"
    ? undefined
    : { keyedOrderObstacle: 'with fifoRetry "resend", a retry moves behind the later messages of its key' })
})
