/** The capabilities of nsqd with the given limits and options. */
import type { Capabilities } from "@requeue/core/port"
import type { Settings } from "../NsqOptions.ts"
import type { Limits } from "./limits.ts"
import * as Wire from "./wire.ts"

/** Milliseconds between nsqd's scans for due messages. https://github.com/nsqio/nsq/blob/master/nsqd/options.go */
const queueScanInterval = 100

export const make = (settings: Settings, limits: Limits): Capabilities.Capabilities => {
  const { envelope, http, outputBufferTimeout, retry } = settings
  const native = limits.maxReqTimeout
  return {
    broker: "nsq",
    retryDelay: { native, beyond: "deferred copies, one after the other" },
    sendDelay: {
      native,
      // A bare body cannot carry the remaining delay.
      beyond:
        envelope === "never" ? undefined : "deferred copies, one after the other, while a consumer of the queue runs"
    },
    delayResolution: queueScanInterval + outputBufferTimeout,
    durableDelays: false,
    durableMessages: false,
    uncountedRelease: false,
    headers: false,
    historyOnRetry: retry === "exact",
    maxBodySize: envelope === "never" ? limits.maxMsgSize : limits.maxMsgSize - Wire.reserve(limits.maxMsgSize),
    connectionBound: true,
    lease: { duration: limits.msgTimeout, max: limits.maxMsgTimeout },
    ordered: false,
    settleBatch: 1,
    settleWait: 0,
    counts: { ready: http, inFlight: http, delayed: http },
    ...(http ? {} : { countsRemedy: "Leave the option http on: only nsqd's HTTP interface reports counts" }),
    tellsMissing: http,
    exactCounts: false,
    uncountedBrowse: false,
    obstacles: {
      keyedOrder: "nsqd keeps no order of messages",
      fairShares: "nsqd does not know whose a message is"
    }
  }
}
