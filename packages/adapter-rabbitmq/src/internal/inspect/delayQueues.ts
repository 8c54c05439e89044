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
  /** Milliseconds within which its messages are due; `undefined` if that is unknown. */
  readonly within: number | undefined
  /** Whether messages of other queues wait there too. Routing keys distinguish them. */
  readonly isShared: boolean
}

const isLevel = (name: string, settings: Settings): boolean => name.startsWith(Names.levels(settings))

/** Whether this delay queue belongs to one queue that the adapter may not bind. */
const isHome = (name: string, settings: Settings): boolean =>
  [Names.rungs(settings), Names.levels(settings)].some(
    (start) => name.startsWith(start) && /^\d+\.home\./.test(name.slice(start.length))
  )

/** A message in a level waits for its digit, and then at most as long again in all lower levels. */
const within = (name: string, args: Arguments, settings: Settings): number | undefined => {
  const ttl = args["x-message-ttl"]
  return typeof ttl === "number" ? ttl * (isLevel(name, settings) ? 2 : 1) : undefined
}

/** Whether this may be a delay queue of the queue: a rung, a level, or a delay queue of its name. */
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
 * The delay queues of a plan, the shortest delays first. `known` are queues of the server; delay queues of other or former policies
 * are among them.
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

/** Queues to check at a time, each on a separate channel, because the server closes the channel for a missing queue. */
export const atOnce = 16

/** Ready messages of a queue; 0 for a missing queue. Declares nothing. */
export const ready = (passive: Passive, name: string): Effect.Effect<number, BrokerError.BrokerError> =>
  passive(name).pipe(
    Effect.map(({ messageCount }) => messageCount),
    Effect.catchIf(
      ({ reason }) => reason === "QueueMissing",
      () => Effect.succeed(0)
    )
  )
