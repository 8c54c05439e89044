/** The queues in which the delayed messages of a queue wait. */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Plan } from "../../RabbitMqPlan.ts"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Arguments } from "../declare/objects.ts"
import * as Levels from "../declare/topologies/levels.ts"
import * as Names from "../names.ts"
import type { QueueInfo } from "./management.ts"
import type { Passive } from "./passive.ts"

/** A queue in which messages wait for their delay. */
export interface DelayQueue {
  readonly name: string
  readonly arguments: Arguments
  /** Milliseconds within which its messages are due; `undefined` where that cannot be told. */
  readonly within: number | undefined
  /** Whether messages of other queues wait there too. Their routing keys tell them apart. */
  readonly isShared: boolean
}

const isLevel = (name: string, settings: Settings): boolean => name.startsWith(Names.levels(settings))

/** Whether a delay of ours is for one queue alone, which is not ours to bind. */
const isHome = (name: string, settings: Settings): boolean =>
  [Names.rungs(settings), Names.levels(settings)].some(
    (start) => name.startsWith(start) && /^\d+\.home\./.test(name.slice(start.length))
  )

/** In a level it waits for its digit, and then for at most as long in all of those below. */
const within = (name: string, args: Arguments, settings: Settings): number | undefined => {
  const ttl = args["x-message-ttl"]
  return typeof ttl === "number" ? ttl * (isLevel(name, settings) ? 2 : 1) : undefined
}

/** Whether this is a queue of any delay: a rung, a level, or one that is for this queue alone. */
const isOfDelay = (
  { arguments: args, name }: Pick<QueueInfo, "arguments" | "name">,
  queue: string,
  settings: Settings
): boolean => {
  const ttl = args["x-message-ttl"]
  if (typeof ttl !== "number") return false
  const { names, topology } = settings
  const isNamed = topology === "perDelayQueue" || topology === "waitLoop"
  const own = isNamed ? Names.fill(names.delayQueue ?? Names.delayQueues[topology], queue, ttl) : undefined
  const level = isLevel(name, settings) ? name.slice(Names.levels(settings).length) : ""
  const rungs = [Names.rung(settings, ttl), Names.homeRung(settings, ttl, queue)]
  return rungs.includes(name) || /^\d+\.\d+$/.test(level) || name === own
}

/**
 * The delay queues of a plan, the soonest due first. `known` are queues that the server has: those of delays that the policy does
 * not have, or has no longer, are among them.
 */
export const of = (plan: Plan, settings: Settings, known: ReadonlyArray<QueueInfo> = []): ReadonlyArray<DelayQueue> => {
  const others = new Set([...plan.homes.keys(), Names.undeliveredQueue(settings)])
  // Messages of a policy that this process does not know may wait in levels that the plan does not use.
  const levels = ["ladder", "levels", "native"].includes(plan.topology) ? Levels.allObjects(settings) : []
  const planned = [...plan.objects, ...plan.onDemand, ...levels].flatMap((object) =>
    object._tag === "Queue" && !others.has(object.name) ? [object] : []
  )
  const isRound = plan.waiting !== undefined
  const all = [...planned, ...known.filter((one) => isOfDelay(one, plan.queue, settings))]
  return [...new Map(all.map(({ arguments: args, name }) => [name, args]))]
    .map(([name, args]) => ({
      name,
      arguments: args,
      within: isRound ? undefined : within(name, args, settings),
      isShared:
        ((name.startsWith(Names.rungs(settings)) || isLevel(name, settings)) && !isHome(name, settings)) ||
        plan.topology === "perMessageTtlShared"
    }))
    .toSorted((a, b) => (a.within ?? Number.POSITIVE_INFINITY) - (b.within ?? Number.POSITIVE_INFINITY))
}

/** Queues that are asked at a time, each on a channel of its own: the server closes that of a queue which does not exist. */
export const atOnce = 16

/** Messages of a queue that are ready; 0 of one that does not exist. It declares nothing. */
export const ready = (passive: Passive, name: string): Effect.Effect<number, BrokerError.BrokerError> =>
  passive(name).pipe(
    Effect.map(({ messageCount }) => messageCount),
    Effect.catchIf(
      ({ reason }) => reason === "QueueMissing",
      () => Effect.succeed(0)
    )
  )
