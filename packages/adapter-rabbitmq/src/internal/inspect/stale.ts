/**
 * Finds objects of ours that a configuration no longer wants, by a snapshot of the server. Pure.
 *
 * A configuration never knows who else uses the server. What bears the name of one of its queues is its own to judge; a
 * shared delay is only said to be none of its own, and only when the configuration is known as a whole. Somebody else who
 * uses such a delay makes it again. A binding of an exchange that is not ours is never judged.
 */
import { Delay } from "@requeue/core/adapter-kit"
import type { Settings } from "../../RabbitMqOptions.ts"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as Former from "../declare/former.ts"
import * as Names from "../names.ts"
import * as Given from "./given.ts"
import type { BindingInfo, ExchangeInfo, QueueInfo } from "./management.ts"

/** The objects of a virtual host. None of this is a statistic: the server tells it as it is. */
export interface Snapshot {
  readonly queues: ReadonlyArray<QueueInfo>
  readonly exchanges: ReadonlyArray<ExchangeInfo>
  readonly bindings: ReadonlyArray<BindingInfo>
}

/** The configuration, and how much of it is known. */
export interface Wanted {
  /** The plans of the configuration's queues. */
  readonly plans: ReadonlyArray<RabbitMqPlan.Plan>
  readonly settings: Settings
  /** Whether these are all queues of the configuration. Without that, no shared delay can be judged. */
  readonly isWhole: boolean
  /** A former prefix: everything under it is stale, but for what queues still refer to. Default: none. */
  readonly prefix?: string | undefined
}

/** Stale objects that are removed together, or stay together. */
export interface Group {
  readonly claim: string
  /** In the order in which messages pass them. */
  readonly queues: ReadonlyArray<QueueInfo>
  /** In the order in which they can be removed. */
  readonly exchanges: ReadonlyArray<ExchangeInfo>
  /** All bindings from and to these. */
  readonly bindings: ReadonlyArray<BindingInfo>
}

/** A claim on an object; objects with the same claim are one group. `order` is its place there, lowest first. */
interface Claim {
  readonly claim: string
  readonly order: number
}

/** Layouts that are there for one queue, by their usual names. Other names may be somebody else's layout. */
const ownLayout = (name: string, { plans, settings }: Wanted): Claim | undefined => {
  for (const { queue } of plans) {
    if (name === Names.waiting(settings, queue))
      return {
        claim: `${queue} has no waiting queue (topology ${settings.topology}): nothing moves its messages on`,
        order: 1
      }
    if (!name.startsWith(queue)) continue
    const rest = name.slice(queue.length)
    const [, seconds] = /^_dlq_(\d+(?:\.\d+)?)$/.exec(rest) ?? []
    const [, round] = /^\.wait\.v1\.(\d+)$/.exec(rest) ?? []
    const claims: ReadonlyArray<readonly [boolean, string, number]> = [
      [seconds !== undefined, `the policy of ${queue} does not delay by ${seconds} s in a queue of its own`, 0],
      [round !== undefined, `${queue} has no waiting queue with rounds of ${round} ms`, 0],
      [rest === ".retry", `${queue} has no retry queue of its own (topology ${settings.topology})`, 0],
      [rest === ".work", `${queue} has no retry queue of its own (topology ${settings.topology})`, 1]
    ]
    const found = claims.find(([isThis]) => isThis)
    if (found !== undefined) return { claim: found[1], order: found[2] }
  }
  return undefined
}

/** Delays that all queues share. */
const sharedDelay = (name: string, { isWhole, settings }: Wanted): Claim | undefined => {
  const own = Names.own(settings)
  if (!isWhole || !name.startsWith(own)) return undefined
  const rest = name.slice(own.length)
  const [, ms] = /^[qc]\.delay\.(\d+)(?:\.home\..+)?$/.exec(rest) ?? []
  if (ms !== undefined)
    return { claim: `no policy of this configuration delays by ${Delay.format(Number(ms))}`, order: 0 }
  const [, type, unit, bit] = /^([qc])\.level\.(\d+)\.(\d+|home\..+)$/.exec(rest) ?? []
  // Levels of 0 ms are the last queues of adopted ones, whatever the resolution.
  const isUsed = [settings.resolution, 0].some((ms) => name.startsWith(`${Names.levels(settings)}${ms}.`))
  if (unit !== undefined && !isUsed) {
    const words = type === "q" ? "quorum" : "classic"
    return { claim: `this configuration has no ${words} levels of ${unit} ms`, order: -Number(bit) || 0 }
  }
  return /^(pre-retry|retry|post-retry)$/.test(rest)
    ? { claim: "this configuration has no shared retry queue", order: rest === "post-retry" ? 1 : 0 }
    : undefined
}

/** Objects of a former prefix, of any version of the layout. */
const formerPrefix = (name: string, { prefix }: Wanted): Claim | undefined => {
  const start = prefix === undefined ? undefined : Given.startOf(name, prefix)
  if (start === undefined) return undefined
  const rest = name.slice(start.length)
  const bit = /\.level\.\d+\.(\d+)$/.exec(name)?.[1]
  const last = ["deliver", "dead", "undelivered"].indexOf(rest)
  return {
    claim: `prefix ${prefix} was asked for`,
    order: last >= 0 ? 1_000 + last : bit === undefined ? 0 : 100 - Number(bit)
  }
}

const claimOn = (name: string, wanted: Wanted): Claim | undefined =>
  formerPrefix(name, wanted) ?? sharedDelay(name, wanted) ?? ownLayout(name, wanted)

/** The start of a name that we give under the present prefix, or under a former one. */
const startOf = (name: string, { prefix, settings }: Wanted): string | undefined =>
  (prefix === undefined ? undefined : Given.startOf(name, prefix)) ??
  (name.startsWith(Names.own(settings)) ? Names.own(settings) : undefined)

/** Whether a queue is as we make it, and not somebody's queue with such a name. */
const isMade = (queue: QueueInfo, wanted: Wanted): boolean => {
  const start = startOf(queue.name, wanted)
  return start === undefined ? isDelay(queue, wanted) : Given.isQueue(queue, start)
}

/** Whether a queue has the arguments of a delay queue of one queue's own. */
const isDelay = ({ arguments: args }: QueueInfo, { plans, settings }: Wanted): boolean => {
  const [exchange, key] = [args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"]]
  const isDeliver = /\.v\d+\.deliver$/.test(String(exchange))
  return plans.some(
    ({ queue }) =>
      (key === queue && (isDeliver || exchange === "" || exchange === `${queue}.work`)) ||
      (key === Names.waiting(settings, queue) && isDeliver)
  )
}

const byOrder = <A>(claimed: ReadonlyArray<readonly [A, Claim]>): ReadonlyArray<A> =>
  claimed.toSorted(([, a], [, b]) => a.order - b.order).map(([object]) => object)

/** Exchanges that something else than the group still leads to. */
const inUse = ({ exchanges, queues }: Snapshot, stale: ReadonlySet<string>): ReadonlySet<string> => {
  const used = new Set<unknown>()
  for (const { arguments: args, name } of queues)
    if (!stale.has(`queue ${name}`)) used.add(args["x-dead-letter-exchange"])
  // What is kept is the alternate of no other, unless that one is kept too; they are few, so that two rounds will do.
  for (let round = 0; round < 2; round++)
    for (const { arguments: args, name } of exchanges)
      if (!stale.has(`exchange ${name}`) || used.has(name)) used.add(args["alternate-exchange"])
  return new Set([...used].map(String))
}

/**
 * Bindings by which the server's own dead letters of a queue go to a queue of ours, and the configuration does not say so.
 * What somebody else has bound, such as a copy for an audit, is somebody else's.
 */
export const formerLetters = ({ bindings, queues }: Snapshot, { plans }: Wanted): ReadonlyArray<BindingInfo> =>
  bindings.filter(({ key, queue, source }) => {
    if (!queues.some((one) => one.name === queue && Former.isHome(one))) return false
    const wanted = plans
      .filter((plan) => plan.queue === key && Names.isDead(source))
      .flatMap(({ objects }) => objects)
      .flatMap((object) =>
        object._tag === "Binding" && object.source === source && object.key === key ? [object.queue] : []
      )
    return wanted.length > 0 && !wanted.includes(queue)
  })

/** The groups of stale objects of a server. */
export const find = (snapshot: Snapshot, wanted: Wanted): ReadonlyArray<Group> => {
  const needed = new Set(
    wanted.plans.flatMap(({ objects, onDemand }) =>
      [...objects, ...onDemand].map((object) => (object._tag === "Binding" ? "" : object.name))
    )
  )
  const claimed = <A extends { readonly name: string }>(all: ReadonlyArray<A>, isOurs: (one: A) => boolean) =>
    all.flatMap((one): ReadonlyArray<readonly [A, Claim]> => {
      const claim = needed.has(one.name) ? undefined : claimOn(one.name, wanted)
      return claim === undefined || !isOurs(one) ? [] : [[one, claim]]
    })
  const queues = claimed(snapshot.queues, (queue) => isMade(queue, wanted))
  const isStaleQueue = (name: string) => queues.some(([queue]) => queue.name === name)
  // The exchange of a layout of one queue's own has that queue's bindings and those of its retry queue alone.
  const exchanges = claimed(snapshot.exchanges, (one) => {
    const { name } = one
    const start = startOf(name, wanted)
    // What somebody else has bound is somebody else's as well.
    if (snapshot.bindings.some(({ isToQueue, source }) => source === name && !isToQueue)) return false
    if (start !== undefined) return Given.isExchange(one, start)
    return snapshot.bindings.every(
      ({ key, queue, source }) => source !== name || isStaleQueue(queue) || `${key}.work` === name
    )
  })
  const stale = new Set([
    ...queues.map(([{ name }]) => `queue ${name}`),
    ...exchanges.map(([{ name }]) => `exchange ${name}`)
  ])
  const used = inUse(snapshot, stale)
  const removable = exchanges.filter(([{ name }]) => !used.has(name))
  const kept = new Set(exchanges.flatMap(([{ name }]) => (used.has(name) ? [name] : [])))
  // What an exchange that is kept leads to is kept as well.
  const isFed = (name: string) => snapshot.bindings.some(({ queue, source }) => queue === name && kept.has(source))
  const removed = queues.filter(([{ name }]) => !isFed(name))
  return [...new Set([...removed, ...removable].map(([, { claim }]) => claim))].map((claim) => {
    const ours = {
      queues: byOrder(removed.filter(([, one]) => one.claim === claim)),
      exchanges: byOrder(removable.filter(([, one]) => one.claim === claim))
    }
    const isTouched = ({ queue, source }: BindingInfo): boolean =>
      source !== "" &&
      (ours.queues.some(({ name }) => name === queue) || ours.exchanges.some(({ name }) => name === source))
    return { claim, ...ours, bindings: snapshot.bindings.filter(isTouched) }
  })
}
