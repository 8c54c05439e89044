/**
 * Finds the adapter's objects that a configuration does not use, in a snapshot of the server. Pure.
 *
 * A configuration does not know the server's other users. It alone decides about objects named after one of its queues.
 * A shared delay is stale only for a whole configuration; another service that uses it redeclares it. A binding of a
 * foreign exchange is never stale.
 */
import { Delay } from "@requeue/core/port"
import type { Settings } from "../../RabbitMqOptions.ts"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as Former from "../declare/legacyArguments.ts"
import type { BindingInfo, ExchangeInfo, QueueInfo } from "../inspect/management.ts"
import * as Names from "../names.ts"
import * as OwnNames from "./ownNames.ts"

/** The objects of a virtual host. They contain no statistics, so they are current. */
export interface Snapshot {
  readonly queues: ReadonlyArray<QueueInfo>
  readonly exchanges: ReadonlyArray<ExchangeInfo>
  readonly bindings: ReadonlyArray<BindingInfo>
}

/** The configuration that the snapshot is compared with. */
export interface Wanted {
  /** The plans of the configuration's queues. */
  readonly plans: ReadonlyArray<RabbitMqPlan.Plan>
  readonly settings: Settings
  /** Whether these are all queues of the configuration. If not, no shared delay is stale. */
  readonly isWhole: boolean
  /** A former prefix. All its objects are stale unless another queue refers to them. Default: none. */
  readonly prefix?: string | undefined
}

/** Stale objects that are removed together or kept together. */
export interface Group {
  readonly claim: string
  /** In the order in which messages pass through them. */
  readonly queues: ReadonlyArray<QueueInfo>
  /** In the order in which they can be deleted. */
  readonly exchanges: ReadonlyArray<ExchangeInfo>
  /** All bindings from and to these. */
  readonly bindings: ReadonlyArray<BindingInfo>
}

/** Why an object is stale: objects with the same claim are one group. `order` is its position there, lowest first. */
interface Claim {
  readonly claim: string
  readonly order: number
}

interface Candidate<A> extends Claim {
  readonly object: A
}

/** The delays of one queue, by their default names. Other names may belong to another service. */
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
    if (seconds !== undefined)
      return { claim: `the policy of ${queue} has no separate queue for delays of ${seconds} s`, order: 0 }
    const [, round] = /^\.wait\.v1\.(\d+)$/.exec(rest) ?? []
    if (round !== undefined) return { claim: `${queue} has no waiting queue with rounds of ${round} ms`, order: 0 }
    if (rest === ".retry" || rest === ".work")
      return {
        claim: `${queue} has no separate retry queue (topology ${settings.topology})`,
        order: rest === ".work" ? 1 : 0
      }
  }
  return undefined
}

/** The delays that all queues share. */
const sharedDelay = (name: string, { isWhole, settings }: Wanted): Claim | undefined => {
  const start = Names.own(settings)
  if (!isWhole || !name.startsWith(start)) return undefined
  const rest = name.slice(start.length)
  const [, ms] = /^[qc]\.delay\.(\d+)(?:\.home\..+)?$/.exec(rest) ?? []
  if (ms !== undefined)
    return { claim: `no policy of this configuration delays by ${Delay.format(Number(ms))}`, order: 0 }
  const [, type, unit, bit] = /^([qc])\.level\.(\d+)\.(\d+|home\..+)$/.exec(rest) ?? []
  // Levels of 0 ms are the last delay queues of queues that the adapter does not declare, for every resolution.
  const isUsed = [settings.resolution, 0].some((ms) => name.startsWith(`${Names.levels(settings)}${ms}.`))
  if (unit !== undefined && !isUsed) {
    const words = type === "q" ? "quorum" : "classic"
    return { claim: `this configuration has no ${words} levels of ${unit} ms`, order: -Number(bit) || 0 }
  }
  return /^(pre-retry|retry|post-retry)$/.test(rest)
    ? { claim: "this configuration has no shared retry queue", order: rest === "post-retry" ? 1 : 0 }
    : undefined
}

/** The objects of a former prefix, of any version of the layout. */
const formerPrefix = (name: string, { prefix }: Wanted): Claim | undefined => {
  const start = prefix === undefined ? undefined : OwnNames.startOf(name, prefix)
  if (start === undefined) return undefined
  const bit = /\.level\.\d+\.(\d+)$/.exec(name)?.[1]
  const last = ["deliver", "dead", "undelivered"].indexOf(name.slice(start.length))
  return {
    claim: `prefix ${prefix} was asked for`,
    order: last >= 0 ? 1_000 + last : bit === undefined ? 0 : 100 - Number(bit)
  }
}

const claimOn = (name: string, wanted: Wanted): Claim | undefined =>
  formerPrefix(name, wanted) ?? sharedDelay(name, wanted) ?? ownLayout(name, wanted)

/** The start of the name of an object under the current prefix, or under the former one. */
const startOf = (name: string, { prefix, settings }: Wanted): string | undefined =>
  (prefix === undefined ? undefined : OwnNames.startOf(name, prefix)) ??
  (name.startsWith(Names.own(settings)) ? Names.own(settings) : undefined)

/** Whether a queue has the arguments of a delay queue of one queue. */
const isDelayOfOne = ({ arguments: args }: QueueInfo, { plans, settings }: Wanted): boolean => {
  const [exchange, key] = [args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"]]
  const isDeliver = /\.v\d+\.deliver$/.test(String(exchange))
  return plans.some(
    ({ queue }) =>
      (key === queue && (isDeliver || exchange === "" || exchange === `${queue}.work`)) ||
      (key === Names.waiting(settings, queue) && isDeliver)
  )
}

/** Whether this adapter declared a queue, rather than another service that uses such a name. */
const isOurQueue = (queue: QueueInfo, wanted: Wanted): boolean => {
  const start = startOf(queue.name, wanted)
  return start === undefined ? isDelayOfOne(queue, wanted) : OwnNames.isQueue(queue, start)
}

/** Whether this adapter declared an exchange and all its bindings. */
const isOurExchange = (
  exchange: ExchangeInfo,
  bindings: ReadonlyArray<BindingInfo>,
  staleQueues: ReadonlySet<string>,
  wanted: Wanted
): boolean => {
  const { name } = exchange
  const own = bindings.filter(({ source }) => source === name)
  if (own.some(({ isToQueue }) => !isToQueue)) return false
  const start = startOf(name, wanted)
  // The exchange of one queue's delays has the bindings of its retry queue and of that queue.
  return start === undefined
    ? own.every(({ key, queue }) => staleQueues.has(queue) || `${key}.work` === name)
    : OwnNames.isExchange(exchange, start)
}

const namesOf = (candidates: ReadonlyArray<Candidate<{ readonly name: string }>>): ReadonlySet<string> =>
  new Set(candidates.map(({ object }) => object.name))

/** Returns the exchanges that remaining queues and exchanges refer to. */
const referredTo = (
  { exchanges, queues }: Snapshot,
  staleQueues: ReadonlySet<string>,
  staleExchanges: ReadonlySet<string>
): ReadonlySet<unknown> => {
  const used = new Set<unknown>()
  for (const { arguments: args, name } of queues) if (!staleQueues.has(name)) used.add(args["x-dead-letter-exchange"])
  // A remaining exchange keeps its alternate exchange. The adapter's chains have two of these, so two rounds are
  // enough.
  for (let round = 0; round < 2; round++)
    for (const { arguments: args, name } of exchanges)
      if (!staleExchanges.has(name) || used.has(name)) used.add(args["alternate-exchange"])
  return used
}

/**
 * Returns bindings through which the server's own dead letters of a queue reach a dead-letter queue of ours that the
 * configuration does not name. Bindings to other queues, such as an audit copy, are not ours.
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

const neededBy = (plans: Wanted["plans"]): ReadonlySet<string> =>
  new Set(
    plans.flatMap(({ objects, onDemand }) =>
      [...objects, ...onDemand].flatMap((object) => (object._tag === "Binding" ? [] : [object.name]))
    )
  )

/** Makes the group of a claim. */
const groupOf = (
  claim: string,
  queues: ReadonlyArray<Candidate<QueueInfo>>,
  exchanges: ReadonlyArray<Candidate<ExchangeInfo>>,
  bindings: ReadonlyArray<BindingInfo>
): Group => {
  const inOrder = <A>(candidates: ReadonlyArray<Candidate<A>>): ReadonlyArray<A> =>
    candidates
      .filter((one) => one.claim === claim)
      .toSorted((a, b) => a.order - b.order)
      .map(({ object }) => object)
  const own = { queues: inOrder(queues), exchanges: inOrder(exchanges) }
  const isOwn = ({ queue, source }: BindingInfo): boolean =>
    source !== "" &&
    (own.queues.some(({ name }) => name === queue) || own.exchanges.some(({ name }) => name === source))
  return { claim, ...own, bindings: bindings.filter(isOwn) }
}

/** Finds the groups of stale objects of a server. */
export const find = (snapshot: Snapshot, wanted: Wanted): ReadonlyArray<Group> => {
  const { bindings } = snapshot
  const needed = neededBy(wanted.plans)
  const candidates = <A extends { readonly name: string }>(objects: ReadonlyArray<A>, isOurs: (object: A) => boolean) =>
    objects.flatMap((object): ReadonlyArray<Candidate<A>> => {
      const claim = needed.has(object.name) ? undefined : claimOn(object.name, wanted)
      return claim === undefined || !isOurs(object) ? [] : [{ object, ...claim }]
    })
  const staleQueues = candidates(snapshot.queues, (queue) => isOurQueue(queue, wanted))
  const queueNames = namesOf(staleQueues)
  const staleExchanges = candidates(snapshot.exchanges, (one) => isOurExchange(one, bindings, queueNames, wanted))
  const exchangeNames = namesOf(staleExchanges)

  const used = referredTo(snapshot, queueNames, exchangeNames)
  const exchanges = staleExchanges.filter(({ object }) => !used.has(object.name))
  // A remaining exchange keeps the queues that it routes to.
  const isFed = (name: string): boolean =>
    bindings.some(({ queue, source }) => queue === name && exchangeNames.has(source) && used.has(source))
  const queues = staleQueues.filter(({ object }) => !isFed(object.name))

  const claims = new Set([...queues, ...exchanges].map(({ claim }) => claim))
  return [...claims].map((claim) => groupOf(claim, queues, exchanges, bindings))
}
