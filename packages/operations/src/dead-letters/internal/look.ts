/** Browses dead letters, and removes none. */
import type { Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type DeadLetter, fromDelivery } from "./deadLetter.ts"
import * as Groups from "./groups.ts"
import type { ListOptions, ReadOptions } from "./options.ts"
import * as Reading from "./reading.ts"
import { aborted } from "./sweep.ts"

/** A reader of dead letters, page by page. */
export interface Letters {
  /** Returns the letters of the next page that the filter selects, perhaps none; `undefined` at the end. */
  readonly next: Effect.Effect<ReadonlyArray<DeadLetter> | undefined, BrokerError.BrokerError>
  /** Returns how many letters were browsed, and how many there are. */
  readonly progress: () => Reading.Progress
}

const open = (broker: Broker.Service, queue: string, { filter, limit }: ReadOptions) =>
  Reading.open(broker, queue, { limit, select: filter && ((letter) => Reading.matches(letter, filter)) })

/** Reads letters until the scope closes. */
export const read = (
  broker: Broker.Service,
  queue: string,
  options: ReadOptions = {}
): Effect.Effect<Letters, BrokerError.BrokerError, Scope.Scope> =>
  Effect.map(open(broker, queue, options), (reading) => ({
    progress: reading.progress,
    next: Effect.flatMap(reading.next, (page) =>
      page === undefined
        ? Effect.as(Reading.tellHidden(queue, reading), undefined)
        : Effect.succeed(page.map(fromDelivery))
    )
  }))

/** Calls back with each letter, and returns the progress. */
const through = (
  broker: Broker.Service,
  queue: string,
  { onProgress, signal, ...options }: ListOptions,
  visit: (letter: DeadLetter) => void
): Effect.Effect<Reading.Progress, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    let progress = (): Reading.Progress => ({ browsed: 0, total: undefined })
    const all = Effect.scoped(
      Effect.gen(function* () {
        if (signal?.aborted === true) return
        const reading = yield* open(broker, queue, options)
        progress = reading.progress
        yield* Reading.each(reading, (letter) => visit(fromDelivery(letter)), onProgress)
        yield* Reading.tellHidden(queue, reading)
      })
    )
    return Effect.map(Effect.raceFirst(all, aborted(signal)), () => progress())
  })

export const list = (
  broker: Broker.Service,
  queue: string,
  options: ListOptions = {}
): Effect.Effect<ReadonlyArray<DeadLetter>, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    const letters: Array<DeadLetter> = []
    const visit = (letter: DeadLetter) => void letters.push(letter)
    return Effect.as(through(broker, queue, { ...options, limit: options.limit ?? 100 }, visit), letters)
  })

export const group = (
  broker: Broker.Service,
  queue: string,
  options: ListOptions = {}
): Effect.Effect<Groups.Groups, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    const { add, all } = Groups.make()
    return Effect.map(through(broker, queue, { ...options, limit: options.limit ?? 1000 }, add), ({ browsed, total }) =>
      all(browsed, total)
    )
  })
