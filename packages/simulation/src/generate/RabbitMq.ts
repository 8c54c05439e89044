/** Draws a RabbitMQ server, and how the adapter uses it. */
import type { RabbitMq, Scenario, Version } from "../Scenario.ts"
import * as Draw from "../world/Draw.ts"

/** The retries' delay of a version, if there are retries and all have the same. */
const delayOf = ({ backoff, maxAge, maxAttempts }: Version): number =>
  maxAttempts > 1 && maxAge === undefined && backoff.length === 1 ? backoff[0]! : 0

/** Whether a queue can keep the delays of all versions. */
const isNative = ({ versions: [first, ...others] }: Scenario): boolean =>
  first !== undefined && delayOf(first) > 0 && others.every((other) => delayOf(other) === delayOf(first))

/** Milliseconds above which a wait has too many rounds. */
const longest = 60_000

/** Whether all waits are short, by all clocks. */
const isShort = ({ processes, sendings, versions }: Scenario): boolean =>
  [
    ...sendings.map(({ delay }) => delay),
    ...versions.flatMap(({ backoff }) => backoff),
    ...processes.flatMap(({ clock }) => [clock.offset, ...clock.jumps.map(({ by }) => by)])
  ].every((millis) => Math.abs(millis) <= longest)

const topologies = ["auto", "auto", "ladder", "levels", "perMessageTtl", "perDelayQueue"] as const

/** Milliseconds of the longest wait in most worlds: consumers check the server's objects twice a minute, which takes most of a long one. */
const longestOfMost = 90_000

/** The smallest frame that a server may have, in bytes. */
const smallest = 4096

/** Milliseconds after which a policy ends delays: each takes a few copies then. */
const policyTtl = 20_000

const shortened = (scenario: Scenario): Scenario => ({
  ...scenario,
  versions: scenario.versions.map((version) => ({
    ...version,
    backoff: version.backoff.map((delay) => Math.min(delay, longestOfMost))
  })),
  sendings: scenario.sendings.map((sending) => ({ ...sending, delay: Math.min(sending.delay, longestOfMost) }))
})

const serverOf = (scenario: Scenario, { chance, pick }: Draw.Sequence): RabbitMq => {
  if (isNative(scenario) && chance(0.5)) return { version: "4.3.6", queueType: "quorum", topology: "native" }
  const version = pick(["3.10.8", "4.0.5", "4.3.6"] as const)
  return {
    version,
    queueType: chance(0.8) ? "quorum" : "classic",
    topology: pick(isShort(scenario) ? [...topologies, "waitLoop"] : topologies),
    ...(chance(0.15) ? { adopted: pick(["quorum", "classic"] as const) } : {})
  }
}

/**
 * Whether delayed messages survive the deletion of the exchange that delivers them. Only quorum queues keep what they cannot pass
 * on, and only these topologies use the exchange for all delays.
 */
const mayBeDeleted = ({ adopted, queueType, topology }: RabbitMq): boolean =>
  queueType === "quorum" && adopted === undefined && ["auto", "ladder", "levels"].includes(topology)

/** The scenario with its server. It has its own random numbers. */
export const on = (scenario: Scenario): Scenario => {
  const random = Draw.sequence(scenario.seed + 0x51c0_77e3)
  const rabbitmq = serverOf(scenario, random)
  const suited = random.chance(0.8) ? shortened(scenario) : scenario
  const isDeleted = mayBeDeleted(rabbitmq) && random.chance(0.1)
  const deletedAt = random.whole(1000, Math.min(scenario.calmAt, 20_000) - 1)
  const isLong = suited.versions.some(({ backoff }) => backoff.some((delay) => delay > policyTtl))
  const hasPolicy = mayBeDeleted(rabbitmq) && !isDeleted && isLong && random.chance(0.2)
  const isFull = suited.sendings.some(({ header }) => header !== undefined)
  return {
    ...suited,
    // A process uses a delay queue of another process only after it has read the policies again.
    processes: hasPolicy ? suited.processes.slice(0, 1) : suited.processes,
    rabbitmq: {
      ...rabbitmq,
      ...(isDeleted ? { deletedAt } : {}),
      ...(hasPolicy ? { policyTtl } : {}),
      ...(isFull ? { frameMax: smallest } : {})
    }
  }
}
