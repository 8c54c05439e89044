/**
 * Looks at dead letters: one for each queue and filter, which all operators share, because a look costs the broker something,
 * and gives the letters to nobody else while it lasts. Those of a queue take turns. The last one is kept until there is another.
 */
import { DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Place } from "../paths.ts"
import { Refusal } from "../refusal.ts"
import type { Connection } from "./connections.ts"
import * as Letters from "./letters.ts"

/** A look that runs or has ended. Times are in milliseconds since the epoch. */
export interface Look {
  readonly place: Place
  readonly operator: string
  readonly begun: number
  /** `undefined` while it runs. */
  readonly ended: number | undefined
  readonly progress: DeadLetters.Progress
  readonly groups: DeadLetters.Groups
  readonly letters: Letters.Letters
  /** Why it failed. */
  readonly trouble: string | undefined
}

/** Does something before and after a look, and may refuse it. */
type Around = <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E | Refusal>

/** Whose look it is, and how far it goes. */
interface Request {
  readonly operator: string
  readonly limit: number
  /** Selects the letters that it shows. Default: all. */
  readonly filter?: ((letter: DeadLetters.DeadLetter) => boolean) | undefined
  /** Default: nothing. */
  readonly around?: Around | undefined
}

/** All looks. */
export interface Looks {
  readonly of: (place: Place) => Look | undefined
  /** Ends the looks at a queue, and says why. Whoever has the turn then is the only one who has its letters. */
  readonly end: (place: Place, why: string) => Semaphore.Semaphore
  /** Forgets the looks of a queue whose letters have changed, but those that run. */
  readonly forget: (place: Place) => void
  /**
   * Begins a look at up to `limit` letters, unless one runs; answers the one that runs. It fails where many with other filters
   * wait for their turn.
   */
  readonly begin: (connection: Connection, place: Place, request: Request) => Effect.Effect<Look, Refusal>
}

/** Queues whose looks are kept, and the bytes of their letters. */
const most = { looks: 50, bytes: 64 * 1024 * 1024 }

/** Looks at a queue that run, or wait for their turn. */
const mostAtOnce = 5

/** The most letters that a look goes through. */
export const longest = 100_000

const nothing = DeadLetters.group([])

const queueOf = ({ broker, queue }: Place): string => JSON.stringify([broker, queue])
const keyOf = (place: Place): string => JSON.stringify([queueOf(place), place.filter])

/** Turns at each queue. */
const turns = () => {
  const all = new Map<string, Semaphore.Semaphore>()
  return (place: Place): Semaphore.Semaphore => {
    const turn = all.get(queueOf(place)) ?? Semaphore.makeUnsafe(1)
    all.set(queueOf(place), turn)
    return turn
  }
}

/** Reads the letters of a look, and tells what it has seen after each page. */
const read = (
  connection: Connection,
  { letters, place: { queue } }: Look,
  { filter, limit }: Request,
  tell: (seen: Partial<Look>) => void
) =>
  connection.use(() =>
    Effect.scoped(
      Effect.gen(function* () {
        const counter = DeadLetters.counter()
        const dead = yield* DeadLetters.make(queue)
        // With a filter, the limit is of those that it passes over as well.
        const reading = yield* dead.read(filter === undefined ? { limit } : { filter })
        for (let page = yield* reading.next; page !== undefined; page = yield* reading.next) {
          for (const letter of page) letters.add(counter.add(letter), letter)
          const progress = reading.progress()
          tell({ progress, groups: counter.all(progress.browsed, progress.total) })
          // Whoever reads pages meanwhile has their turn.
          yield* Effect.yieldNow
          if (progress.browsed >= limit) break
        }
        tell({ progress: reading.progress() })
      })
    )
  )

/** Keeps a look, and forgets the oldest that have ended where there are too many. */
const keeping = (looks: Map<string, Look>) => (look: Look) => {
  const key = keyOf(look.place)
  looks.delete(key)
  looks.set(key, look)
  let bytes = [...looks.values()].reduce((sum, { letters }) => sum + letters.size(), 0)
  for (const [oldest, { ended, letters }] of looks) {
    if (looks.size <= most.looks && bytes <= most.bytes) break
    if (ended === undefined || oldest === key) continue
    bytes -= letters.size()
    looks.delete(oldest)
  }
  return look
}

/** Looks that end with the scope. */
export const make: Effect.Effect<Looks, never, Scope.Scope> = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const looks = new Map<string, Look>()
  /** The ends of those that run. */
  const ends = new Map<string, Deferred.Deferred<never, Error>>()
  const turnOf = turns()
  const ofQueue = (place: Place) => [...looks.values()].filter((look) => queueOf(look.place) === queueOf(place))
  const set = keeping(looks)

  const run = (connection: Connection, begun: Look, request: Request) =>
    Effect.gen(function* () {
      const { around = (work) => work } = request
      let look = begun
      const through = read(connection, begun, request, (seen) => {
        look = set({ ...look, ...seen })
      })
      // It ends in its turn, so that its letters are back when the next one begins.
      const bounded = Effect.raceFirst(Deferred.await(ends.get(keyOf(begun.place))!), through)
      const exit = yield* Effect.exit(turnOf(begun.place).withPermits(1)(around(bounded)))
      ends.delete(keyOf(begun.place))
      const ended = yield* Clock.currentTimeMillis
      const error = Exit.isFailure(exit) ? Exit.findErrorOption(exit) : undefined
      const trouble =
        error === undefined ? undefined : error._tag === "Some" ? error.value.message : "it was interrupted"
      set({ ...look, ended, trouble })
    })

  return {
    of: (place) => looks.get(keyOf(place)),
    end: (place, why) => {
      for (const look of ofQueue(place)) {
        const end = ends.get(keyOf(look.place))
        if (end !== undefined) Deferred.doneUnsafe(end, Exit.fail(new Error(why)))
      }
      return turnOf(place)
    },
    forget: (place) => {
      for (const look of ofQueue(place)) if (look.ended !== undefined) looks.delete(keyOf(look.place))
    },
    begin: (connection, place, request) =>
      Effect.gen(function* () {
        const current = looks.get(keyOf(place))
        if (current !== undefined && current.ended === undefined) return current
        if (ofQueue(place).filter(({ ended }) => ended === undefined).length >= mostAtOnce) {
          const detail = `${mostAtOnce} looks with other filters wait for their turn at ${place.queue}`
          return yield* new Refusal({ status: 503, detail, remedy: "Wait for their end" })
        }
        const look = set({
          place,
          operator: request.operator,
          begun: yield* Clock.currentTimeMillis,
          ended: undefined,
          progress: { browsed: 0, total: undefined },
          groups: nothing,
          letters: Letters.make(),
          trouble: undefined
        })
        ends.set(keyOf(place), Deferred.makeUnsafe())
        yield* Effect.forkIn(run(connection, look, request), scope)
        return look
      })
  }
})
