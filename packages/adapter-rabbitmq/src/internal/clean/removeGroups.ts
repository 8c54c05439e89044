/**
 * Removes groups of stale objects without losing a message: neither one in their queues nor one published meanwhile.
 *
 * 1. Each exchange in front of a stale queue is bound to the holding queue first, and unbound from the stale queue second.
 *    So the server routes and confirms every message of a running publisher, and none enters the stale queue.
 * 2. The messages of both queues are moved to where they belong, with the rest of their delay.
 * 3. A queue is deleted once it has been empty for a while, has no consumer and no binding, and the server forwards nothing
 *    from it. A consumer receives what a publisher sends directly to the queue at that moment.
 * 4. Its exchange is deleted together with the holding queue's binding: a level with no binding would pass messages on
 *    early. The server refuses a publisher that arrives now, and the publisher declares all objects again. Where that has
 *    begun, the group is restored.
 *
 * Objects in use are kept. An interrupted removal restores what it has begun. A killed one leaves messages in the holding
 * queue, and the next one moves them.
 */
import type { BrokerError } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { BindingInfo, Management } from "../inspect/management.ts"
import type { Move } from "../inspect/moving.ts"
import type { Server } from "./server.ts"
import type { Group } from "./stale.ts"

/**
 * Milliseconds that a queue must stay empty. The server counts the messages that it still forwards every 5 s, and its
 * count can be 8 s old.
 */
const quietPeriod = 15_000

/** Milliseconds that a routed message may take to arrive. */
const routingTime = 1000

/**
 * Milliseconds between rounds of draining, and the time for draining the holding queue, which may fill faster than it
 * drains.
 */
const roundInterval = 250
const holdingQueueTime = 2000

/** The connections and settings of the removal. */
export interface Dependencies {
  readonly server: Server
  readonly management: Pick<Management, "bindings" | "exchanges" | "queue" | "queues">
  readonly move: Move
  /** The queue that receives what is published during the removal. It exists, and nothing else uses it. */
  readonly holdingQueue: string
  /** Whether the caller has stopped the removal. */
  readonly isStopped: () => boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The result for a group. */
export interface Outcome {
  readonly group: Group
  /** The number of messages that were moved out of its queues. */
  readonly moved: number
  /** Why the group is kept; `undefined` for a removed one. */
  readonly why: string | undefined
}

/** The progress of a group. */
interface Removal {
  readonly group: Group
  /** The bindings by which messages enter its queues. */
  readonly entries: ReadonlyArray<BindingInfo>
  /** Whether its entries lead to the holding queue. */
  isDiverted: boolean
  moved: number
  /** When its queues were drained for the first time. */
  drainedAt: number | undefined
  /** Since when its queues are empty. */
  emptySince: number | undefined
  why: string | undefined
}

const removalOf = (group: Group): Removal => ({
  group,
  entries: group.bindings.filter(({ queue }) => hasQueue(group, queue)),
  isDiverted: false,
  moved: 0,
  drainedAt: undefined,
  emptySince: undefined,
  why: undefined
})

const hasQueue = ({ queues }: Group, name: string): boolean => queues.some((queue) => queue.name === name)

const consumedBy = (queue: string): string => `a consumer reads ${queue}`
const stillArriving = "messages still arrive"
const usedAgain = "another program uses it again"

/** Diverts messages for the group's queues to the holding queue, unless a consumer reads one of the queues. */
const divert = ({ holdingQueue, server }: Dependencies, removal: Removal) =>
  Effect.gen(function* () {
    const queues = yield* Effect.forEach(removal.group.queues, ({ name }) => server.check(name))
    const consumed = queues.find(({ consumerCount }) => consumerCount > 0)
    if (consumed !== undefined) return void (removal.why = consumedBy(consumed.queue))
    removal.isDiverted = true
    for (const entry of removal.entries) yield* server.bind(entry, holdingQueue)
    for (const entry of removal.entries) yield* server.unbind(entry, entry.queue)
  })

const unbindHoldingQueue = ({ holdingQueue, server }: Dependencies, { entries }: Removal) =>
  Effect.forEach(entries, (entry) => server.unbind(entry, holdingQueue), { discard: true })

/** Restores the group as it was before the removal. */
const restore = (env: Dependencies, removal: Removal) =>
  Effect.gen(function* () {
    if (!removal.isDiverted) return
    yield* env.server.restore(removal.group)
    yield* unbindHoldingQueue(env, removal)
    removal.isDiverted = false
  })

/** Keeps the group because of an error. A lost connection ends the whole removal. */
const keep = (removal: Removal) => (error: BrokerError.BrokerError) =>
  error.reason === "ConnectionLost" ? Effect.fail(error) : Effect.sync(() => void (removal.why = error.message))

const drain = ({ isStopped, move, now, server }: Dependencies, removal: Removal) =>
  Effect.gen(function* () {
    let count = 0
    for (const { name } of removal.group.queues) count += yield* server.drain(name, move, isStopped)
    removal.moved += count
    removal.drainedAt ??= now()
    if (count === 0) removal.emptySince ??= now()
    else if (now() > removal.drainedAt + routingTime) removal.why = stillArriving
    else removal.emptySince = undefined
  }).pipe(Effect.catch(keep(removal)))

/** Drains the groups until each has been empty for the quiet period, is kept, or the caller stops the removal. */
const drainUntilQuiet = (env: Dependencies, removals: ReadonlyArray<Removal>) =>
  Effect.gen(function* () {
    const { holdingQueue, isStopped, move, now, server } = env
    const isQuiet = ({ emptySince }: Removal) => emptySince !== undefined && now() >= emptySince + quietPeriod
    for (;;) {
      const drained = removals.filter(({ why }) => why === undefined)
      if (isStopped() || drained.every(isQuiet)) return
      yield* Effect.forEach(drained, (removal) => drain(env, removal))
      // A group in use is restored at once, because messages that go to both queues are duplicated.
      for (const removal of removals) if (removal.why !== undefined) yield* restore(env, removal)
      const end = now() + holdingQueueTime
      yield* server.drain(holdingQueue, move, () => isStopped() || now() > end)
      yield* Effect.sleep(Duration.millis(roundInterval))
    }
  })

/** Returns why an empty queue must not be deleted; `undefined` where it may be. */
const obstacleOf = ({ management, server }: Dependencies, { name, type }: Group["queues"][number]) =>
  Effect.gen(function* () {
    const { consumerCount, messageCount } = yield* server.check(name)
    if (consumerCount > 0) return consumedBy(name)
    if (messageCount > 0) return stillArriving
    const held = type === "quorum" ? (yield* management.queue(name))?.held : 0
    if (held === undefined) return "the server has not counted yet the messages that it still forwards: run it again"
    return held > 0 ? `${held} messages wait until the next queue accepts them` : undefined
  })

/** Deletes the empty queues of a group. Returns why one is kept. */
const deleteQueues = (env: Dependencies, { group }: Removal) =>
  Effect.gen(function* () {
    const bindings = yield* env.management.bindings
    if (bindings.some(({ queue, source }) => source !== "" && hasQueue(group, queue))) return usedAgain
    for (const queue of group.queues) {
      const obstacle = yield* obstacleOf(env, queue)
      if (obstacle !== undefined) return obstacle
    }
    for (const queue of group.queues) {
      const refusal = yield* env.server.deleteQueue(queue, env.move)
      if (refusal !== undefined) return refusal
    }
    return undefined
  })

/** Deletes the exchanges of a group whose queues are gone. Returns why one is kept. */
const deleteExchanges = (env: Dependencies, removal: Removal) =>
  Effect.gen(function* () {
    const { holdingQueue, management, server } = env
    const { bindings, exchanges } = removal.group
    for (const { name } of exchanges) {
      const isKnown = ({ key, queue }: BindingInfo): boolean =>
        queue === holdingQueue ||
        (!hasQueue(removal.group, queue) &&
          bindings.some((one) => one.source === name && one.queue === queue && one.key === key))
      const current = (yield* management.bindings).filter(({ source }) => source === name)
      if (!current.every(isKnown)) return usedAgain
      yield* server.deleteExchange(name)
    }
    yield* unbindHoldingQueue(env, removal)
    // A publisher that was declaring the objects may have created them after the last check.
    yield* Effect.sleep(Duration.millis(routingTime))
    const declared = [...(yield* management.queues), ...(yield* management.exchanges)]
    const isDeleted = (name: string) => hasQueue(removal.group, name) || exchanges.some((one) => one.name === name)
    return declared.some(({ name }) => isDeleted(name))
      ? "another program uses it and has declared it again"
      : undefined
  })

/** Deletes a group that has been empty for the quiet period, or restores it. */
const deleteGroup = (env: Dependencies, removal: Removal) =>
  Effect.gen(function* () {
    removal.why = (yield* deleteQueues(env, removal)) ?? (yield* deleteExchanges(env, removal))
    if (removal.why !== undefined) return yield* restore(env, removal)
    removal.isDiverted = false
  }).pipe(Effect.catch((error) => Effect.andThen(keep(removal)(error), restore(env, removal))))

/** Removes groups of stale objects, except those in use. */
export const removeGroups = (
  env: Dependencies,
  groups: ReadonlyArray<Group>
): Effect.Effect<ReadonlyArray<Outcome>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { holdingQueue, isStopped, move, server } = env
    const removals = groups.map(removalOf)
    const all = Effect.gen(function* () {
      yield* Effect.forEach(removals, (removal) => divert(env, removal))
      yield* drainUntilQuiet(env, removals)
      for (const removal of removals) {
        if (isStopped()) removal.why ??= "interrupted"
        yield* removal.why === undefined ? deleteGroup(env, removal) : restore(env, removal)
      }
    })
    yield* Effect.onError(all, () => Effect.ignore(Effect.forEach(removals, (removal) => restore(env, removal))))
    yield* server.drain(holdingQueue, move)
    // Messages that were routed just before the last binding of the holding queue was removed.
    yield* Effect.sleep(Duration.millis(routingTime))
    yield* server.drain(holdingQueue, move)
    return removals.map(({ group, moved, why }) => ({ group, moved, why }))
  })
