/** A memory broker in virtual time that fails as a test asks, with the books of one queue. */
import { Books, Recording, VirtualTime, Wait, Workload } from "@requeue/conformance"
import { Broker, BrokerError, Consumer } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { type Control, MemoryBroker, type Options } from "../src/index.ts"

export const queue = "q"

export interface World {
  readonly control: Control.Control
  readonly faults: Recording.Faults
  readonly books: Books.Books
  /** Milliseconds of virtual time since 1970. */
  readonly now: () => number
  readonly start: typeof Consumer.start
  readonly startBatch: typeof Consumer.startBatch
  /** Waits, for a day at most, until these messages have ended; default: all. */
  readonly untilEnded: (of?: ReadonlyArray<string>) => Effect.Effect<void, unknown>
  /** Checks that every message was handled, is a dead letter, was dropped, or is in the queue. */
  readonly balance: Effect.Effect<void>
}

const idOf = ({ delivery: { metadata } }: { readonly delivery: { readonly metadata: { readonly id: string } } }) =>
  metadata.id

/** How a settlement fails. */
export const broken = (reason: BrokerError.Reason, fate?: Broker.Fate): Omit<Broker.SettleFailure, "delivery"> => {
  const error = new BrokerError.BrokerError({ broker: "memory", operation: "settle", reason, detail: "for the test" })
  return { error, fate: fate ?? Broker.fateOf(error) }
}

export interface Setup {
  readonly options?: Options.Options
  /** Of all random numbers. */
  readonly seed?: string
  /** Puts something between the consumers and the broker. */
  readonly wrap?: (broker: Broker.Service) => Broker.Service
}

/** Publishes messages of these ids, and runs the program with consumers that keep the books. */
export const run = <A>(
  ids: ReadonlyArray<string>,
  program: (world: World) => Effect.Effect<A, unknown, Broker.Broker | Scope.Scope>,
  { options = {}, seed = "seed", wrap = (broker) => broker }: Setup = {}
): Promise<A> => {
  const virtual = Effect.gen(function* () {
    const controlled = yield* MemoryBroker.makeControlled(options)
    const { control } = controlled
    const { broker, faults } = yield* Recording.make(wrap(controlled.broker))
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const books = Books.make(ids)
    const kept = <O extends Consumer.Options>(given: O): O => ({
      ...given,
      onEvent: (event) => {
        books.onEvent(event)
        given.onEvent?.(event)
      }
    })
    yield* Workload.publishAll(broker, queue, ids)
    const world: World = {
      control,
      faults,
      books,
      now,
      start: (from, given, handler) =>
        Consumer.start(from, kept(given), (message, context) => {
          books.ran(message.id)
          return handler(message, context)
        }),
      startBatch: (from, given, handler) =>
        Consumer.startBatch(from, kept(given), (batch, context) => {
          for (const { id } of batch.messages) books.ran(id)
          return handler(batch, context)
        }),
      untilEnded: (of = ids) => Books.untilEnded(books, { of, within: 24 * 3_600_000 }),
      balance: Effect.gen(function* () {
        const { delayed, inFlight, ready } = yield* control.snapshot(queue)
        const letters = yield* control.snapshot(`${queue}.dlq`)
        const queued = [...ready, ...inFlight].map(({ metadata }) => metadata.id)
        Books.balance(books, {
          queued: [...queued, ...delayed.map(idOf)],
          deadLetters: letters.ready.map(({ metadata }) => metadata.id)
        })
      })
    }
    return yield* Effect.provideService(program(world), Broker.Broker, broker)
  })
  return Effect.runPromise(
    VirtualTime.run(Random.withSeed(Effect.scoped(virtual), seed)).pipe(
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )
}

/** The number of runs of one message. */
export const runsOf = ({ runs }: Books.Books, id: string): number => runs.filter((each) => each === id).length

/** The ids of the events of one kind. */
export const told = ({ events }: Books.Books, tag: Books.Books["events"][number]["_tag"]): ReadonlyArray<string> =>
  events.flatMap((event) => (event._tag === tag && "id" in event ? [event.id] : []))

/** Waits for a condition, for so many milliseconds at most; default: an hour. */
export const until = (what: string, condition: () => boolean, within = 3_600_000) => Wait.until(what, condition, within)
