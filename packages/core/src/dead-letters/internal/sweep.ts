/** Goes once through the dead letters that wait in a queue, and removes some; the others are given back at the end. */
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
  /** Letters that are chosen at most. Default: no limit. */
  readonly limit?: number | undefined
  /** Leave everything where it is. */
  readonly dryRun?: boolean | undefined
  /** Letters per second at most. Default: no limit. */
  readonly rate?: number | undefined
  /** Stops between two steps. */
  readonly signal?: AbortSignal | undefined
}

export interface Work {
  /** Whether the letter is chosen. Asked once about each. */
  readonly choose: (letter: Delivery) => boolean
  /** What is done with chosen letters before they are removed. Not called for a dry run. */
  readonly before: (letters: ReadonlyArray<Delivery>) => Effect.Effect<void, BrokerError>
  /** Called after each step. */
  readonly onStep: () => void
}

/** Of a filter that forgets to answer, or is async, nothing may follow. */
export const isMeant = (letter: Delivery, filter: ((letter: Delivery) => unknown) | undefined): boolean =>
  filter === undefined || filter(letter) === true

/** Letters in our hands that are not decided on yet, at most. */
const window = 100

/**
 * Milliseconds without a letter after which there are no more. Where the broker has counted some, what is slow is the way to
 * them, and to take that for an end would tell of a success that was none.
 */
const idle = { counted: 10_000, uncounted: 1000 }

export const run = (
  broker: Service,
  queue: string,
  { dryRun = false, limit = Number.POSITIVE_INFINITY, rate, signal }: Options,
  { before, choose, onStep }: Work
): Effect.Effect<void, BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { ready } = yield* broker.admin.counts(queue)
      // New dead letters may come while we work; those are for the next time, else a hopeless one would go round.
      let unseen = ready ?? Number.POSITIVE_INFINITY
      const patience = ready === undefined ? idle.uncounted : idle.counted
      let left = limit
      const inbox = yield* open(broker, queue, patience)
      while (unseen > 0 && left > 0 && signal?.aborted !== true) {
        const letters = yield* inbox.take(Math.min(unseen, left, rate === undefined ? window : 1))
        if (letters.length === 0) break
        unseen -= letters.length
        const chosen = letters.filter(choose)
        left -= chosen.length
        if (chosen.length > 0 && !dryRun) {
          yield* before(chosen)
          yield* inbox.remove(chosen)
        }
        onStep()
        if (unseen > 0 && left > 0 && rate !== undefined) yield* Effect.sleep(Duration.millis(1000 / rate))
      }
    })
  )

/** A subscription to read letters from; all that was not removed goes back when the scope closes. */
const open = (broker: Service, queue: string, patience: number) =>
  Effect.gen(function* () {
    const timers = yield* Timers.make
    const arrived: Array<Delivery> = []
    const taken = new Set<Delivery>()
    let wake = () => {}
    const subscription: Subscription = yield* broker.subscribe({
      queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [],
      maxCredit: Number.MAX_SAFE_INTEGER,
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
      /** Up to `count` letters; none when no more come. */
      take: (count: number) =>
        Effect.gen(function* () {
          subscription.credit(taken.size + Math.min(count, window))
          const came = yield* Effect.timeoutOption(some, Duration.millis(patience))
          if (Option.isNone(came)) return []
          const letters = arrived.splice(0, count)
          for (const letter of letters) taken.add(letter)
          return letters
        })
    }
  })
