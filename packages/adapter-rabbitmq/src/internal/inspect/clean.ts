/**
 * Removes stale objects, and loses nothing: neither what is in them, nor what is published into them meanwhile.
 *
 * 1. Each exchange in front of a stale queue leads to a queue of clean's own, before it no longer leads to the stale one.
 *    So publishers that run find their message routed and confirmed at every moment, and none of it enters the stale queue.
 * 2. What is in either queue is moved to where it belongs, with what is left of its delay.
 * 3. A queue that has been empty for a while, with no consumer, nothing bound to it, and nothing that the server still
 *    hands on, is deleted. What a former publisher sends straight into it at that moment is taken by a consumer.
 * 4. Its exchange is deleted, with the binding of clean's own queue: a level without any would pass messages on early. A
 *    publisher who comes now is refused, and declares everything again; where that has begun, all is restored.
 *
 * What is in use stays. A clean that is interrupted restores what it has begun; one that is killed leaves messages in its
 * queue, and the next one moves them.
 */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { BindingInfo, Management } from "./management.ts"
import type { Move } from "./moving.ts"
import type { Removal } from "./removal.ts"
import type { Group } from "./stale.ts"

/**
 * Milliseconds for which a queue must have been empty. The server counts every 5 s what it still hands on, and its count
 * has been seen to be 8 s old.
 */
const quiet = 15_000

/** Milliseconds that a message which is routed already may take to arrive, and between two looks. */
const arrival = 1000
const interval = 250

/** Milliseconds for moving what came meanwhile, until the stale queues are looked at again. It may come faster than it goes. */
const turn = 2000

/** The operator's own. */
export interface Dependencies {
  readonly removal: Removal
  readonly management: Management
  readonly move: Move
  /** The queue that takes what is published meanwhile. It exists, and nobody else uses it. */
  readonly meanwhile: string
  /** Whether people want it to end before it is done. */
  readonly isStopped: () => boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** A group, and what has become of it. */
export interface Outcome {
  readonly group: Group
  /** Messages that were moved out of its queues. */
  readonly moved: number
  /** Why it is still there; `undefined` where it is gone. */
  readonly why: string | undefined
}

interface Work {
  readonly group: Group
  /** Bindings by which messages get into its queues. */
  readonly entries: ReadonlyArray<BindingInfo>
  moved: number
  /** Since when its queues are empty; `undefined` while they are not. */
  since: number | undefined
  /** When they had been drained for the first time. */
  first: number | undefined
  why: string | undefined
  /** Whether its bindings are changed. */
  isOpen: boolean
}

const workOf = (group: Group): Work => ({
  group,
  entries: group.bindings.filter(({ queue }) => group.queues.some(({ name }) => name === queue)),
  moved: 0,
  since: undefined,
  first: undefined,
  why: undefined,
  isOpen: false
})

/**
 * Steps of the removal of one group.
 *
 * Long, because they are a sequence on the same work.
 */
const steps = ({ isStopped, management, meanwhile, move, now, removal }: Dependencies) => {
  const consumersOf = (work: Work) =>
    Effect.map(
      Effect.forEach(work.group.queues, ({ name }) => removal.ask(name, (channel) => channel.checkQueue(name))),
      (all) => all.find(({ consumerCount }) => consumerCount > 0)?.queue
    )

  const begin = (work: Work) =>
    Effect.gen(function* () {
      const read = yield* consumersOf(work)
      if (read !== undefined) return void (work.why = `a consumer reads ${read}`)
      work.isOpen = true
      for (const entry of work.entries) yield* removal.bind(entry, meanwhile)
      for (const entry of work.entries) yield* removal.unbind(entry, entry.queue)
    })

  /** Makes a group as it was before. */
  const restore = (work: Work) =>
    Effect.gen(function* () {
      if (!work.isOpen) return
      yield* removal.restore(work.group)
      for (const entry of work.entries) yield* removal.unbind(entry, meanwhile)
      work.isOpen = false
    })

  const drain = (work: Work) =>
    Effect.gen(function* () {
      let count = 0
      for (const { name } of work.group.queues) count += yield* removal.drain(name, move, isStopped)
      work.moved += count
      work.first ??= now()
      if (count === 0) work.since ??= now()
      else if (now() > work.first + arrival) work.why = "messages still come in"
      else work.since = undefined
    }).pipe(Effect.catch((error: BrokerError.BrokerError) => failed(work, error)))

  const failed = (work: Work, error: BrokerError.BrokerError) =>
    error.reason === "ConnectionLost" ? Effect.fail(error) : Effect.sync(() => void (work.why = error.message))

  /** Why a group that is empty may not be removed. */
  const obstacle = (work: Work) =>
    Effect.gen(function* () {
      const { queues } = work.group
      const bindings = yield* management.bindings
      const again = queues.find(({ name }) => bindings.some(({ queue, source }) => source !== "" && queue === name))
      if (again !== undefined) return "somebody uses it again"
      for (const { name, type } of queues) {
        const there = yield* removal.ask(name, (channel) => channel.checkQueue(name))
        if (there.consumerCount > 0) return `a consumer reads ${name}`
        if (there.messageCount > 0) return "messages still come in"
        const held = type === "quorum" ? (yield* management.queue(name))?.held : 0
        if (held === undefined) return "the server has not counted yet what it still hands on: try again"
        if (held > 0) return `${held} messages wait until a queue behind it takes them`
      }
      return undefined
    })

  /** Removes the exchanges of a group whose queues are gone. */
  const removeExchanges = (work: Work) =>
    Effect.gen(function* () {
      for (const { name } of work.group.exchanges) {
        const isKnown = ({ key, queue }: BindingInfo): boolean =>
          queue === meanwhile ||
          (!work.group.queues.some((one) => one.name === queue) &&
            work.group.bindings.some((one) => one.source === name && one.queue === queue && one.key === key))
        const there = (yield* management.bindings).filter(({ source }) => source === name)
        if (!there.every(isKnown)) return "somebody uses it again"
        yield* removal.removeExchange(name)
      }
      for (const entry of work.entries) yield* removal.unbind(entry, meanwhile)
      return undefined
    })

  const isThereAgain = ({ group }: Work) =>
    Effect.map(Effect.all([management.queues, management.exchanges]), ([queues, exchanges]) =>
      [...queues, ...exchanges].some(({ name }) =>
        [...group.queues, ...group.exchanges].some((one) => one.name === name)
      )
    )

  const remove = (work: Work) =>
    Effect.gen(function* () {
      work.why ??= yield* obstacle(work)
      for (const queue of work.group.queues) work.why ??= yield* removal.remove(queue, move)
      work.why ??= yield* removeExchanges(work)
      if (work.why === undefined) {
        // Who was in the middle of declaring it may have come after the last look.
        yield* Effect.sleep(Duration.millis(arrival))
        if (yield* isThereAgain(work)) work.why = "somebody uses it, and has made it again"
      }
      if (work.why !== undefined) return yield* restore(work)
      work.isOpen = false
    }).pipe(Effect.catch((error) => Effect.andThen(failed(work, error), restore(work))))

  return { begin, drain, remove, restore }
}

/** Removes groups of stale objects, as far as they are not in use. */
export const run = (
  env: Dependencies,
  groups: ReadonlyArray<Group>
): Effect.Effect<ReadonlyArray<Outcome>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { isStopped, meanwhile, move, now, removal } = env
    const { begin, drain, remove, restore } = steps(env)
    const works = groups.map(workOf)
    const meanwhileDrained = removal.drain(meanwhile, move)
    const all = Effect.gen(function* () {
      yield* Effect.forEach(works, begin)
      const open = () => works.filter(({ why }) => why === undefined)
      while (!isStopped() && open().some(({ since }) => since === undefined || now() < since + quiet)) {
        yield* Effect.forEach(open(), drain)
        // What is in use is given back at once: messages that go both ways are doubled.
        yield* Effect.forEach(
          works.filter(({ why }) => why !== undefined),
          restore
        )
        const over = now() + turn
        yield* removal.drain(meanwhile, move, () => isStopped() || now() > over)
        yield* Effect.sleep(Duration.millis(interval))
      }
      for (const work of works) {
        if (isStopped()) work.why ??= "interrupted"
        yield* work.why === undefined ? remove(work) : restore(work)
      }
    })
    yield* Effect.onError(all, () => Effect.ignore(Effect.forEach(works, restore)))
    yield* meanwhileDrained
    // What was on its way when the last exchange no longer led there.
    yield* Effect.sleep(Duration.millis(arrival))
    yield* meanwhileDrained
    return works.map(({ group, moved, why }) => ({ group, moved, why }))
  })
