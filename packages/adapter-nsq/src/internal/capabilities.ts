/** What these nsqd, with these options, can honour. */
import type { Capabilities } from "@requeue/core/adapter-kit"
import type { Settings } from "../NsqOptions.ts"
import * as Envelope from "./wire.ts"
import type { Limits } from "./limits.ts"

/** nsqd looks for what is due ten times a second. https://github.com/nsqio/nsq/blob/master/nsqd/options.go */
const scan = 100

export const make = (settings: Settings, limits: Limits): Capabilities.Capabilities => {
  const { envelope, http, outputBufferTimeout, retry } = settings
  const native = limits.maxReqTimeout
  return {
    broker: "nsq",
    retryDelay: { native, beyond: "deferred copies, one after the other" },
    sendDelay: {
      native,
      // A raw body has no room to say that it must wait on.
      beyond:
        envelope === "never" ? undefined : "deferred copies, one after the other, while a consumer of the queue runs"
    },
    delayResolution: scan + outputBufferTimeout,
    durableDelays: false,
    durableMessages: false,
    uncountedRelease: false,
    headers: false,
    historyOnRetry: retry === "exact",
    maxBodySize: envelope === "never" ? limits.maxMsgSize : limits.maxMsgSize - Envelope.reserve,
    connectionBound: true,
    lease: { duration: limits.msgTimeout, max: limits.maxMsgTimeout },
    ordered: false,
    settleBatch: 1,
    settleWait: 0,
    counts: { ready: http, inFlight: http, delayed: http },
    exactCounts: false,
    peek: false
  }
}
