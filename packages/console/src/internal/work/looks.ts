/**
 * Browses of dead letters. Each queue and filter has one, which all operators share, because a browse costs the broker
 * something and hides the letters from other readers. Browses of one queue run one after another. The last browse is kept
 * until the next one begins.
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

/** A browse that runs or has ended. Times are in milliseconds since the epoch. */
export interface Look {
  readonly place: Place
  readonly operator: string
  readonly begun: number
  /** When the browse ended; `undefined` while it runs. */
  readonly ended: number | undefined
  readonly progress: DeadLetters.Progress
  readonly groups: DeadLetters.Groups
  readonly letters: Letters.Letters
  /** Why the browse failed. */
  readonly trouble: string | undefined
}

/** A browse that was forgotten because its queue has changed since. */
export interface Outdated {
  readonly operator: string
  /** When the browse ended, in milliseconds since the epoch. */
  readonly ended: number
  /** The id of the job that has worked on the queue since; `undefined` where other processes have changed the queue. */
  readonly job: string | undefined
}

/** Runs something before and after a browse, and may refuse the browse. */
type Around = <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E | Refusal>

/** The operator who asks for a browse, and its size. */
interface Request {
  readonly operator: string
  readonly limit: number
  /** Selects the letters to show. Default: all. */
  readonly filter?: ((letter: DeadLetters.DeadLetter) => boolean) | undefined
  /** Runs before and after the browse. Default: nothing. */
  readonly around?: Around | undefined
}

/** All browses. */
export interface Looks {
  readonly of: (place: Place) => Look | undefined
  /** Returns the last browse, if the console has forgotten it and no other browse has begun since. */
  readonly outdated: (place: Place) => Outdated | undefined
  /**
   * Ends the browses of a queue with an error, and returns the queue's semaphore. Its holder is then the only reader of the
   * letters.
   */
  readonly end: (place: Place, why: string) => Semaphore.Semaphore
  /** Forgets the ended browses of a queue whose letters have changed. `job` names the job that changed them. */
  readonly forget: (place: Place, job?: string) => void
  /**
   * Begins a browse of up to `limit` letters and returns it. If a browse runs already, returns that one. Fails if too many
   * browses with other filters wait for the queue.
   */
  readonly begin: (connection: Connection, place: Place, request: Request) => Effect.Effect<Look, Refusal>
}

/** The largest number of queues whose browses are kept, and the largest size of their letters in bytes. */
const most = { looks: 50, bytes: 64 * 1024 * 1024 }

/** The largest number of browses of a queue that run or wait at the same time. */
const mostAtOnce = 5

/** The largest number of letters that a browse reads. */
export const longest = 100_000

const nothing = DeadLetters.group([])

const queueOf = ({ broker, queue }: Place): string => JSON.stringify([broker, queue])
const keyOf = (place: Place): string => JSON.stringify([queueOf(place), place.filter])

/** One semaphore for each queue. */
const turns = () => {
  const all = new Map<string, Semaphore.Semaphore>()
  return (place: Place): Semaphore.Semaphore => {
    const turn = all.get(queueOf(place)) ?? Semaphore.makeUnsafe(1)
    all.set(queueOf(place), turn)
    return turn
  }
}

/** Reads the letters of a browse, and reports its progress after each page. */
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
        // With a filter, the limit also counts the letters that the filter rejects.
        const reading = yield* dead.read(filter === undefined ? { limit } : { filter })
        for (let page = yield* reading.next; page !== undefined; page = yield* reading.next) {
          for (const letter of page) letters.add(counter.add(letter), letter)
          const progress = reading.progress()
          tell({ progress, groups: counter.all(progress.browsed, progress.total) })
          // Other requests are served between two pages.
          yield* Effect.yieldNow
          if (progress.browsed >= limit) break
        }
        tell({ progress: reading.progress() })
      })
    )
  )

/** Keeps a browse, and forgets the oldest ended browses if there are too many. */
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

/** Keeps the browses that were forgotten, for at most as many places as browses are kept. */
const outdating = () => {
  const all = new Map<string, Outdated>()
  const add = (key: string, outdated: Outdated): void => {
    all.delete(key)
    all.set(key, outdated)
    if (all.size > most.looks) all.delete(all.keys().next().value!)
  }
  return { add, of: (key: string) => all.get(key), delete: (key: string) => void all.delete(key) }
}

/** Makes the browses, which end with the scope. */
export const make: Effect.Effect<Looks, never, Scope.Scope> = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const looks = new Map<string, Look>()
  const outdated = outdating()
  /** Ends running browses. */
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
      // It ends while it holds the semaphore: the broker has its letters back before the next browse begins.
      const bounded = Effect.raceFirst(Deferred.await(ends.get(keyOf(begun.place))!), through)
      const exit = yield* Effect.exit(turnOf(begun.place).withPermits(1)(around(bounded)))
      ends.delete(keyOf(begun.place))
      const ended = yield* Clock.currentTimeMillis
      const error = Exit.isFailure(exit) ? Exit.findErrorOption(exit) : undefined
      const trouble =
        error === undefined ? undefined : error._tag === "Some" ? error.value.message : "the browse was interrupted"
      set({ ...look, ended, trouble })
    })

  return {
    of: (place) => looks.get(keyOf(place)),
    outdated: (place) => outdated.of(keyOf(place)),
    end: (place, why) => {
      for (const look of ofQueue(place)) {
        const end = ends.get(keyOf(look.place))
        if (end !== undefined) Deferred.doneUnsafe(end, Exit.fail(new Error(why)))
      }
      return turnOf(place)
    },
    forget: (place, job) => {
      for (const { ended, operator, place: seen } of ofQueue(place)) {
        if (ended === undefined) continue
        looks.delete(keyOf(seen))
        outdated.add(keyOf(seen), { operator, ended, job })
      }
    },
    begin: (connection, place, request) =>
      Effect.gen(function* () {
        const current = looks.get(keyOf(place))
        if (current !== undefined && current.ended === undefined) return current
        if (ofQueue(place).filter(({ ended }) => ended === undefined).length >= mostAtOnce) {
          const detail = `${mostAtOnce} browses with other filters wait for ${place.queue}`
          return yield* new Refusal({ status: 503, detail, remedy: "Try again when these browses have ended" })
        }
        outdated.delete(keyOf(place))
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
