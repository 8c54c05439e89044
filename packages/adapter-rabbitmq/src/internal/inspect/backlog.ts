/** Counts all that waits for a queue, where the server keeps it. It declares nothing. */
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
  /** Messages of a queue that are ready; 0 of one that does not exist. */
  readonly ready: (name: string) => Effect.Effect<number, BrokerError.BrokerError>
  readonly readyInShared: (names: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Ready>, BrokerError.BrokerError>
  /** All queues that the management interface tells; none without it. */
  readonly listed: Effect.Effect<ReadonlyArray<QueueInfo>, BrokerError.BrokerError>
  readonly management: Management | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly plan: (request: RabbitMqPlan.Request) => Effect.Effect<RabbitMqPlan.Plan, BrokerError.BrokerError>
}

/** Messages that are ready, or the error where this user may not look. */
type Ready = number | BrokerError.BrokerError

/** Messages of a queue that are ready. */
const readyIn = ({ ready }: Pick<Dependencies, "ready">, name: string): Effect.Effect<Ready, BrokerError.BrokerError> =>
  Effect.catchIf(
    ready(name),
    ({ reason }) => reason === "AccessRefused",
    (error) => Effect.succeed(error)
  )

/** Messages of several queues that are ready. */
const readyInAll = (env: Pick<Dependencies, "ready">, names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => readyIn(env, name), { concurrency: DelayQueues.atOnce })

/** Messages that are ready in the queues that others share: many ask for all of them at the same time, and that is one question. */
export const inShared = (env: Pick<Dependencies, "ready">): Dependencies["readyInShared"] => {
  const ask = Together.make((key) => readyInAll(env, key === "" ? [] : key.split(separator)))
  return (names) => ask(names.join(separator))
}

/** No name of a queue has it. */
const separator = "\n"

const noManagement = "only the management interface tells it: give the option management"
const notCounted = "the server has not counted it yet"

type Part = Pick<Backlog.Backlog, "delayed" | "backoff" | "undelivered"> & Pick<Backlog.Backlog, "remarks">

const noDelays = (why: string): Part => ({
  delayed: undefined,
  backoff: undefined,
  undelivered: undefined,
  remarks: { delayed: why, backoff: why }
})

/** Counts the messages that a queue delays by itself, as the management interface has counted them some seconds ago. */
const byItself = ({ management, now }: Dependencies, queue: string) =>
  Effect.gen(function* () {
    if (management === undefined) return noDelays(`the queue delays its retries by itself: ${noManagement}`)
    const { delayed, lastDue } = (yield* Effect.orElseSucceed(management.queue(queue), () => undefined)) ?? {}
    if (delayed === undefined) return noDelays(notCounted)
    const within = lastDue === undefined ? undefined : Math.max(0, lastDue - now())
    const part: Part = {
      delayed,
      backoff: delayed === 0 ? [] : within === undefined ? undefined : [{ within, count: delayed }],
      undelivered: undefined,
      remarks: { delayed: "counts what the queue itself delays, of some seconds ago" }
    }
    return part
  })

/** Topologies whose delay queues are the same for every policy. */
const complete = new Set(["levels", "perMessageTtl", "perMessageTtlShared"])

/** Counts the delay queues, whose number does not depend on that of the messages. */
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
      ...(isShared ? [`counts messages of all queues with prefix ${settings.prefix}, which share their delays`] : []),
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
        ...(isTold ? {} : { backoff: `topology ${plan.topology} does not tell when messages are due` })
      }
    }
    return part
  }).pipe(
    // A policy that this server cannot keep has no delays.
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

/** The age of the first message, which classic queues tell. https://www.rabbitmq.com/docs/management */
const oldest = ({ listed, now }: Dependencies, queue: string) =>
  Effect.map(listed, (all) => {
    const { headTimestamp } = all.find(({ name }) => name === queue) ?? {}
    return headTimestamp === undefined ? undefined : Math.max(0, now() - headTimestamp)
  })

/** A queue's own numbers. */
export interface Own extends Pick<Broker.Counts, "ready" | "inFlight"> {
  readonly consumers: number
}

/** All that waits for a queue. */
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
          ? { oldest: "the server tells it of classic queues only, by its management interface" }
          : {}),
        ...waiting.remarks,
        ...aside.remarks
      }
    }
  })
