/** The broker's capabilities, from its options and the server's version. */
import { type Capabilities, Delay } from "@requeue/core/port"
import type { Settings } from "../RabbitMqOptions.ts"
import * as Version from "./version.ts"

/** Milliseconds per hop through a queue. */
const hopTime = 5

const reach = ({ topology }: Settings): Capabilities.DelayReach => {
  switch (topology) {
    case "perMessageTtl":
    case "perMessageTtlShared":
      // No delay is native, because none is exact; `Feasibility.check` reports the reason.
      return { native: 0, beyond: "one retry queue with per-message TTL: a message waits behind longer ones in front" }
    case "waitLoop":
      return { native: 0, beyond: "rounds through a waiting queue, while a consumer of the queue runs" }
    case "auto":
    case "ladder":
    case "levels":
    case "perDelayQueue":
    case "native":
      return { native: Delay.max, beyond: undefined }
  }
}

const resolution = ({ resolution: unit, topology }: Settings): number =>
  topology === "perDelayQueue" || topology === "waitLoop" ? 1000 : unit + 10 * hopTime

/** Returns the capabilities of a server of this version, such as `4.3.6`. */
export const make = (settings: Settings, serverVersion: string): Capabilities.Capabilities => {
  const counted = Version.countsReleases(settings.queueType, serverVersion)
  return {
    broker: "rabbitmq",
    retryDelay: reach(settings),
    sendDelay: reach(settings),
    delayResolution: resolution(settings),
    durableDelays: true,
    durableMessages: true,
    uncountedRelease: !counted,
    headers: true,
    // An immediate retry is a reject, which does not change the message; a classic queue's is a copy.
    historyOnRetry: settings.queueType === "classic",
    maxBodySize: settings.maxBodySize ?? Version.maxBodySize(serverVersion),
    connectionBound: true,
    lease: undefined,
    ordered: true,
    settleBatch: 1,
    settleWait: 0,
    counts: { ready: true, inFlight: settings.management !== undefined, delayed: false },
    ...(settings.management === undefined
      ? { countsRemedy: "Give the option management, the address of the management interface" }
      : { boundsDelayed: true }),
    tellsMissing: true,
    exactCounts: false,
    uncountedBrowse: !counted,
    // Messages that the queue itself delays cannot be browsed.
    delayedMessages: settings.topology !== "native",
    obstacles: {
      keyedOrder: "a delayed retry leaves its RabbitMQ queue, so the next message of its key would overtake it",
      fairShares: "RabbitMQ delivers the messages of a queue in one order"
    }
  }
}
