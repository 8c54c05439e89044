/** What this server, with these options, can honour. */
import { type Capabilities, Delay } from "@requeue/core/adapter-kit"
import type { Settings } from "../RabbitMqOptions.ts"
import { countsReleases } from "./consume/toDelivery.ts"
import * as Version from "./version.ts"

/** How late a hop through a queue is, in milliseconds. */
const hop = 5

const reach = ({ topology }: Settings): Capabilities.DelayReach => {
  switch (topology) {
    case "perMessageTtl":
    case "perMessageTtlShared":
      // Reported by `check`: no delay is exact, because a message in front may have a longer one.
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
  topology === "perDelayQueue" || topology === "waitLoop" ? 1000 : unit + 10 * hop

export const make = (settings: Settings, serverVersion: string): Capabilities.Capabilities => {
  const counted = countsReleases(settings.queueType, serverVersion)
  return {
    broker: "rabbitmq",
    retryDelay: reach(settings),
    sendDelay: reach(settings),
    delayResolution: resolution(settings),
    durableDelays: true,
    durableMessages: true,
    uncountedRelease: !counted,
    headers: true,
    // An immediate retry is a reject, which leaves the message as it was; a classic queue's is a copy.
    historyOnRetry: settings.queueType === "classic",
    maxBodySize: settings.maxBodySize ?? Version.maxBodySize(serverVersion),
    connectionBound: true,
    lease: undefined,
    ordered: true,
    settleBatch: 1,
    settleWait: 0,
    counts: { ready: true, inFlight: settings.management !== undefined, delayed: false },
    exactCounts: false,
    peek: !counted
  }
}
