/** Draws a RabbitMQ server, and how the adapter uses it. */
import type { RabbitMq, Scenario } from "../Scenario.ts"
import * as Draw from "../world/Draw.ts"

/** The one delay of all versions, which a queue can keep natively; `undefined` if there is none. */
const nativeDelay = ({ versions }: Scenario): number | undefined => {
  const delays = versions.map(({ backoff, maxAttempts }) => (maxAttempts > 1 && backoff.length === 1 ? backoff[0]! : 0))
  const [delay, ...others] = new Set(delays)
  return delay === 0 || others.length > 0 ? undefined : delay
}

/** The server of a scenario. It has its own random numbers. */
export const of = (scenario: Scenario): RabbitMq => {
  const { chance, pick } = Draw.sequence(scenario.seed + 0x51c0_77e3)
  const version = pick(["3.10.8", "4.0.5", "4.3.6"] as const)
  if (version === "4.3.6" && nativeDelay(scenario) !== undefined && chance(0.5))
    return { version, queueType: "quorum", topology: "native" }
  return {
    version,
    queueType: chance(0.8) ? "quorum" : "classic",
    topology: pick(["auto", "auto", "ladder", "levels", "perMessageTtl", "perDelayQueue", "waitLoop"] as const),
    ...(chance(0.15) ? { adopted: pick(["quorum", "classic"] as const) } : {})
  }
}
