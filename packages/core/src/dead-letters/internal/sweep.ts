/** Goes once through the waiting dead letters of a queue, and removes some. The others are given back at the end. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Service, SettleRequest, Subscription } from "../../port/Broker.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"
import * as Timers from "../../adapter-kit/Timers.ts"

export interface Options {
  /** The most dead letters that are selected. Default: no limit. */
  readonly limit?: number | undefined
  /** Whether to remove nothing. Default: false. */
  readonly dryRun?: boolean | undefined
  /** The most dead letters per second. Default: no limit. */
  readonly rate?: number | undefined
  /** Stops between two steps. Default: it is never stopped. */
  readonly signal?: AbortSignal | undefined
}

export interface Steps {
  /** Whether to remove the dead letter. Called once for each. */
  readonly select: (letter: Delivery) => boolean
  /** Called with selected dead letters before they are removed, but not in a dry run. */
  readonly beforeRemoval: (letters: ReadonlyArray<Delivery>) => Effect.Effect<void, BrokerError>
  /** Called after each step. */
  readonly onStep: () => void
}

/** Whether the filter returns `true` itself: one that is async, or forgets to return, must not select everything. */
export const matches = (letter: Delivery, filter: ((letter: Delivery) => unknown) | undefined): boolean =>
  filter === undefined || filter(letter) === true

/** The most dead letters of one step. */
const window = 100

/**
 * Milliseconds without a delivery after which the queue counts as empty. It is longer where the broker has counted dead
 * letters: these exist, and a slow broker must not look like an empty queue.
 */
const idleTimeouts = { counted: 10_000, uncounted: 1000 }

export const run = (
  broker: Service,
  queue: string,
  { dryRun = false, limit = Number.POSITIVE_INFINITY, rate, signal }: Options,
  { beforeRemoval, onStep, select }: Steps
): Effect.Effect<void, BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { ready } = yield* broker.admin.counts(queue)
      // Dead letters that arrive later are left for the next time, lest one that always fails is redriven for ever.
      let unseen = ready ?? Number.POSITIVE_INFINITY
      let left = limit
      const inbox = yield* open(broker, queue, ready === undefined ? idleTimeouts.uncounted : idleTimeouts.counted)
      while (unseen > 0 && left > 0 && signal?.aborted !== true) {
        const letters = yield* inbox.take(Math.min(unseen, left, rate === undefined ? window : 1))
        if (letters.length === 0) break
        unseen -= letters.length
        const selected = letters.filter(select)
        left -= selected.length
        if (selected.length > 0 && !dryRun) {
          yield* beforeRemoval(selected)
          yield* inbox.remove(selected)
        }
        onStep()
        if (unseen > 0 && left > 0 && rate !== undefined) yield* Effect.sleep(Duration.millis(1000 / rate))
      }
    })
  )

/** Subscribes to the queue. Dead letters that were not removed go back when the scope closes. */
const open = (broker: Service, queue: string, idleTimeout: number) =>
  Effect.gen(function* () {
    const timers = yield* Timers.make
    const arrived: Array<Delivery> = []
    const taken = new Set<Delivery>()
    let wake = () => {}
    const subscription: Subscription = yield* broker.subscribe({
      queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [],
      onReconnect: () => {},
      onDelivery: (delivery) => {
        arrived.push(delivery)
        wake()
      }
    })
    const settle = (deliveries: ReadonlyArray<Delivery>, settlement: Settlement.Settlement) => {
      const requests: ReadonlyArray<SettleRequest> = deliveries.map((delivery) => ({ delivery, settlement }))
      return requests.length === 0 ? Effect.void : Effect.asVoid(subscription.settle(requests))
    }
    yield* Effect.addFinalizer(() => {
      subscription.credit(0)
      return settle([...taken, ...arrived], Settlement.Release())
    })
    const keepLeases = (duration: number): void => {
      timers.after(duration / 3, () => {
        Effect.runFork(subscription.extend([...taken, ...arrived]))
        keepLeases(duration)
      })
    }
    if (broker.capabilities.lease !== undefined) keepLeases(broker.capabilities.lease.duration)
    const some = Effect.callback<void>((resume) => {
      wake = () => resume(Effect.void)
      if (arrived.length > 0) wake()
    })
    return {
      remove: (letters: ReadonlyArray<Delivery>) => {
        for (const letter of letters) taken.delete(letter)
        return settle(letters, Settlement.Ack)
      },
      /** Waits for dead letters, and returns up to `count`; none when the idle timeout has passed. */
      take: (count: number) =>
        Effect.gen(function* () {
          subscription.credit(taken.size + Math.min(count, window))
          const came = yield* Effect.timeoutOption(some, Duration.millis(idleTimeout))
          if (Option.isNone(came)) return []
          const letters = arrived.splice(0, count)
          for (const letter of letters) taken.add(letter)
          return letters
        })
    }
  })
