/** Counts the waiting messages of a queue, wherever the server keeps them. Declares nothing. */
import { Backlog, type Broker, type BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as Names from "../names.ts"
import * as DelayQueues from "./delayQueues.ts"
import type { Management, QueueInfo } from "./management.ts"
import * as Together from "./coalesce.ts"

/** The broker's own. */
export interface Dependencies {
  readonly settings: Settings
  /** Ready messages of a queue; 0 for a missing queue. */
  readonly ready: (name: string) => Effect.Effect<number, BrokerError.BrokerError>
  readonly readyInShared: (names: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Ready>, BrokerError.BrokerError>
  /** All queues that the management interface lists; none without it. */
  readonly listed: Effect.Effect<ReadonlyArray<QueueInfo>, BrokerError.BrokerError>
  readonly management: Management | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly plan: (request: RabbitMqPlan.Request) => Effect.Effect<RabbitMqPlan.Plan, BrokerError.BrokerError>
}

/** The ready messages, or the error if this user may not read them. */
type Ready = number | BrokerError.BrokerError

/** Ready messages of a queue. */
const readyIn = ({ ready }: Pick<Dependencies, "ready">, name: string): Effect.Effect<Ready, BrokerError.BrokerError> =>
  Effect.catchIf(
    ready(name),
    ({ reason }) => reason === "AccessRefused",
    (error) => Effect.succeed(error)
  )

/** Ready messages of several queues. */
const readyInAll = (env: Pick<Dependencies, "ready">, names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => readyIn(env, name), { concurrency: DelayQueues.atOnce })

/** Ready messages of shared delay queues. Concurrent callers share one request. */
export const inShared = (env: Pick<Dependencies, "ready">): Dependencies["readyInShared"] => {
  const ask = Together.make((key) => readyInAll(env, key === "" ? [] : key.split(separator)))
  return (names) => ask(names.join(separator))
}

/** A separator that no queue name contains. */
const separator = "\n"

const noManagement = "only the management interface reports it: set the option management"
const notCounted = "the server has not counted it yet"

type Part = Pick<Backlog.Backlog, "delayed" | "backoff" | "undelivered"> & Pick<Backlog.Backlog, "remarks">

const noDelays = (why: string): Part => ({
  delayed: undefined,
  backoff: undefined,
  undelivered: undefined,
  remarks: { delayed: why, backoff: why }
})

/** Counts the messages that the queue itself delays, as the management interface counted them some seconds ago. */
const byItself = ({ management, now }: Dependencies, queue: string) =>
  Effect.gen(function* () {
    if (management === undefined) return noDelays(`the queue itself delays its retries: ${noManagement}`)
    const { delayed, lastDue } = (yield* Effect.orElseSucceed(management.queue(queue), () => undefined)) ?? {}
    if (delayed === undefined) return noDelays(notCounted)
    const within = lastDue === undefined ? undefined : Math.max(0, lastDue - now())
    const part: Part = {
      delayed,
      backoff: delayed === 0 ? [] : within === undefined ? undefined : [{ within, count: delayed }],
      undelivered: undefined,
      remarks: { delayed: "the messages that the queue itself delays, some seconds ago" }
    }
    return part
  })

/** Topologies whose delay queues are the same for every policy. */
const complete = new Set(["levels", "perMessageTtl", "perMessageTtlShared"])

/** Counts the messages in the delay queues. Their number does not depend on the number of messages. */
const delays = (env: Dependencies, { queue, retry }: Backlog.Request) =>
  Effect.gen(function* () {
    const { listed, management, settings } = env
    const plan = yield* env.plan({ queue, retry })
    if (plan.native !== undefined) return yield* byItself(env, queue)
    const known = yield* Effect.orElseSucceed(listed, () => [])
    const places = DelayQueues.of(plan, settings, known)
    const [shared, own] = [places.filter(({ isShared }) => isShared), places.filter(({ isShared }) => !isShared)]
    const namesOf = (all: typeof places) => all.map(({ name }) => name)
    const counts = yield* Effect.all([env.readyInShared(namesOf(shared)), readyInAll(env, namesOf(own))], {
      concurrency: "unbounded"
    })
    const counted = [...shared, ...own].map((place, at) => ({ place, count: counts.flat()[at]! }))
    const waiting: Array<(typeof counted)[number] & { readonly count: number }> = []
    for (const { count, place } of counted) {
      if (typeof count !== "number") return noDelays(count.message)
      if (count > 0) waiting.push({ place, count })
    }
    const dues = waiting.flatMap(({ count, place: { within } }) => (within === undefined ? [] : [{ within, count }]))
    const isTold = dues.length === waiting.length
    const isShared = waiting.some(({ place }) => place.isShared)
    const caveats = [
      ...(isShared
        ? [`counts messages of all queues with prefix ${settings.prefix}, which share their delay queues`]
        : []),
      ...(management === undefined && !complete.has(settings.topology)
        ? ["without the option management, counts the delays of this policy alone"]
        : [])
    ]
    const part: Part = {
      delayed: waiting.reduce((sum, { count }) => sum + count, 0),
      backoff: isTold ? Backlog.sum(dues) : undefined,
      undelivered: undefined,
      remarks: {
        ...(caveats.length === 0 ? {} : { delayed: caveats.join("; ") }),
        ...(isTold ? {} : { backoff: `topology ${plan.topology} does not show when messages are due` })
      }
    }
    return part
  }).pipe(
    // A policy that this server cannot keep has no delayed messages.
    Effect.catchIf(
      ({ reason }) => reason === "Unsupported" || reason === "QueueMismatch",
      ({ detail }) => Effect.succeed(noDelays(detail))
    )
  )

const undelivered = (env: Dependencies) =>
  Effect.map(
    readyIn(env, Names.undeliveredQueue(env.settings)),
    (count): Pick<Part, "undelivered" | "remarks"> =>
      typeof count === "number"
        ? {
            undelivered: count,
            remarks: count === 0 ? {} : { undelivered: `counts those of all queues with prefix ${env.settings.prefix}` }
          }
        : { undelivered: undefined, remarks: { undelivered: count.message } }
  )

/** The age of the first message, which classic queues report. https://www.rabbitmq.com/docs/management */
const oldest = ({ listed, now }: Dependencies, queue: string) =>
  Effect.map(listed, (all) => {
    const { headTimestamp } = all.find(({ name }) => name === queue) ?? {}
    return headTimestamp === undefined ? undefined : Math.max(0, now() - headTimestamp)
  })

/** The counts of the queue itself. */
export interface Own extends Pick<Broker.Counts, "ready" | "inFlight"> {
  readonly consumers: number
}

/** The waiting messages of a queue. */
export const of = (
  env: Dependencies,
  request: Backlog.Request,
  { consumers, inFlight, ready }: Own
): Effect.Effect<Backlog.Backlog, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { management } = env
    const [waiting, aside] = yield* Effect.all([delays(env, request), undelivered(env)], { concurrency: "unbounded" })
    const age = ready === 0 ? 0 : yield* Effect.orElseSucceed(oldest(env, request.queue), () => undefined)
    const untold = management === undefined ? noManagement : notCounted
    return {
      ready,
      inFlight,
      consumers,
      ...waiting,
      undelivered: aside.undelivered,
      oldest: age,
      remarks: {
        ...(inFlight === undefined ? { inFlight: untold } : {}),
        ...(age === undefined
          ? { oldest: "the server reports it only for classic queues, by its management interface" }
          : {}),
        ...waiting.remarks,
        ...aside.remarks
      }
    }
  })
