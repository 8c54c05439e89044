/** Sends dead letters back to work: publish, confirm, then remove; what is passed over is given back at the end. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Service, SettleRequest, Subscription } from "../Broker.ts"
import type { BrokerError } from "../BrokerError.ts"
import type { Delivery } from "../Delivery.ts"
import * as Outgoing from "../Outgoing.ts"
import * as QueueDefinition from "../QueueDefinition.ts"
import * as RetryPolicy from "../RetryPolicy.ts"
import * as Settlement from "../Settlement.ts"
import * as Telemetry from "../Telemetry.ts"
import * as Timers from "../Timers.ts"

export interface Options {
  /** Where to. Default: the queue each letter came from; letters without one are passed over. */
  readonly to?: string | undefined
  /** How many at most. Default: all that wait when it begins. */
  readonly limit?: number | undefined
  /** Only letters for which it answers true. */
  readonly filter?: ((letter: Delivery) => boolean) | undefined
  /** Count what would be redriven, and leave everything where it is. */
  readonly dryRun?: boolean | undefined
  /** Letters per second at most. Default: no limit. */
  readonly rate?: number | undefined
  /** Letters that have been redriven so often already are passed over: they would only come back. Default 3. */
  readonly maxRedrives?: number | undefined
  /** Stops between two steps; what was redriven until then stays redriven. */
  readonly signal?: AbortSignal | undefined
  /** Called after each step with the report so far. */
  readonly onProgress?: ((report: Report) => void) | undefined
}

export interface Report {
  readonly redriven: number
  /** Passed over because the filter rejected them. */
  readonly filtered: number
  /** Passed over because they have been redriven too often. */
  readonly guarded: number
  /** Passed over because nobody knows where they came from. */
  readonly homeless: number
}

/** Letters in our hands that are not decided on yet, at most. */
const window = 100

/** Milliseconds without a letter after which there are no more. */
const idle = 1000

type Answer = keyof Report

const judge = (letter: Delivery, options: Options): Answer => {
  // Of a filter that forgets to answer, or is async, nothing may follow.
  const isWanted: unknown = options.filter === undefined || options.filter(letter)
  if (isWanted !== true) return "filtered"
  if (letter.metadata.redrives >= (options.maxRedrives ?? 3)) return "guarded"
  return target(letter, options) === undefined ? "homeless" : "redriven"
}

const target = (letter: Delivery, { to }: Options): string | undefined => to ?? letter.metadata.deadLetter?.queue

const validate = (queue: string, { limit, maxRedrives, rate, to }: Options): void => {
  const check = (field: string, value: number | undefined, min: number) => {
    if (value !== undefined && !(value >= min)) {
      throw new RangeError(`DeadLetters.redrive: ${field} must be a number >= ${min}, got ${value}`)
    }
  }
  check("limit", limit, 1)
  check("maxRedrives", maxRedrives, 0)
  check("rate", rate, 0.001)
  if (to === undefined) return
  QueueDefinition.make(to)
  if (to === queue) {
    throw new RangeError(`DeadLetters.redrive: to must be another queue, got ${JSON.stringify(to)}`)
  }
}

/**
 * @throws RangeError when a number is out of its range, or `to` is the queue of dead letters itself
 */
export const redrive = (broker: Service, queue: string, options: Options = {}): Effect.Effect<Report, BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      validate(queue, options)
      const publish = Telemetry.publisher(yield* Telemetry.Telemetry, broker.capabilities.broker, broker.publish)
      const { ready } = yield* broker.admin.counts(queue)
      const limit = options.limit ?? Number.POSITIVE_INFINITY
      // New dead letters may come while we work; those are for the next time, else a hopeless one would go round.
      let unseen = ready ?? Number.POSITIVE_INFINITY
      const inbox = yield* open(broker, queue)
      const report = { redriven: 0, filtered: 0, guarded: 0, homeless: 0 }
      while (unseen > 0 && report.redriven < limit && options.signal?.aborted !== true) {
        const room = Math.min(unseen, limit - report.redriven, options.rate === undefined ? window : 1)
        const letters = yield* inbox.take(room)
        if (letters.length === 0) break
        unseen -= letters.length
        const chosen: Array<Delivery> = []
        for (const letter of letters) {
          const answer = judge(letter, options)
          report[answer]++
          if (answer === "redriven" && options.dryRun !== true) chosen.push(letter)
        }
        if (chosen.length > 0) {
          yield* publish(chosen.map((letter) => Outgoing.redrive(letter, target(letter, options)!)))
          yield* inbox.remove(chosen)
        }
        options.onProgress?.({ ...report })
        const more = unseen > 0 && report.redriven < limit
        if (more && options.rate !== undefined) yield* Effect.sleep(Duration.millis(1000 / options.rate))
      }
      return { ...report }
    })
  )

/** A subscription to read letters from; all that was not removed goes back when the scope closes. */
const open = (broker: Service, queue: string) =>
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
          const came = yield* Effect.timeoutOption(some, Duration.millis(idle))
          if (Option.isNone(came)) return []
          const letters = arrived.splice(0, count)
          for (const letter of letters) taken.add(letter)
          return letters
        })
    }
  })
