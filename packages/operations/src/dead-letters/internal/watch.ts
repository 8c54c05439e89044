/**
 * Watches the dead-letter queues to which letters may come back, and the queues that they were redriven to.
 *
 * Browsing hides letters from other readers, and some brokers count it as a delivery. So the watch counts first, and
 * browses only if a queue has grown, or if the broker cannot count.
 */
import type { Broker, BrokerError, Delivery } from "@requeue/core"
import type { Outgoing } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Returned } from "./returned.ts"
import * as Sweep from "./sweep.ts"
import * as Waiting from "./waiting.ts"

export interface Watch {
  /** Watches further dead-letter queues. Call it before letters can come back to them. */
  readonly add: (queues: ReadonlyArray<string>) => Effect.Effect<void, BrokerError.BrokerError>
  /** Call it with each letter whose copy was published. */
  readonly published: (letter: Pick<Delivery.Delivery, "place">, copy: Outgoing.Outgoing) => void
  /** Call it when the redrive has removed letters from its queue. */
  readonly swept: (removed: number) => void
  /**
   * Browses the dead-letter queues that have grown, with pauses in between. At the end of a stage it browses at once, also
   * if letters are missing: missing letters may hide as many new ones.
   */
  readonly look: (isLast: boolean) => Effect.Effect<void, BrokerError.BrokerError>
  /** Counts the messages in the queues that letters were redriven to. */
  readonly waiting: Waiting.Count
  /**
   * Returns the number of letters that arrived in a dead-letter queue since the watch began, and that were not browsed.
   */
  readonly unseen: () => number
  /** Returns an upper bound of the letters that arrived in the dead-letter queues since the last browse. */
  readonly fresh: () => number
}

/** Milliseconds between two times of browsing. */
const pause = 5000

interface Place {
  readonly queue: string
  /**
   * The number of letters in the queue when the watch began, without the redriven letters; `undefined` if the broker cannot
   * count.
   */
  base: number | undefined
  /** The number of letters at the last browse. */
  known: number | undefined
  /** The number of letters that have arrived since the watch began. */
  come: number
  unseen: number
  /** The number of letters that have arrived since the last browse. */
  fresh: number
  /** Whether another reader held letters at the last browse, so another browse may show more. */
  isHidden: boolean
  /** The time of the last browse. */
  at: number
}

/** Makes the watch. `queues` are the dead-letter queues; the redrive takes its letters from the first of them. */
export const make = (
  broker: Broker.Service,
  queues: ReadonlyArray<string>,
  comeBacks: Returned
): Effect.Effect<Watch, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    /** The number of copies that may wait for earlier messages of their keys. The copy of a parked letter is the first. */
    let entered = 0
    const waiting = yield* Waiting.make(broker, comeBacks.isOurs, () => entered)
    const places: Array<Place> = []
    const has = (queue: string): boolean => places.some((place) => place.queue === queue)
    const add: Watch["add"] = (queues) =>
      Effect.gen(function* () {
        for (const queue of queues) {
          if (has(queue)) continue
          const known = lettersIn(yield* broker.admin.counts(queue))
          // Another letter may have added it meanwhile.
          if (has(queue)) continue
          const at = Number.NEGATIVE_INFINITY
          places.push({ queue, base: known, known, come: 0, unseen: 0, fresh: 0, isHidden: false, at })
        }
      })
    yield* add(queues)

    /** Browses the letters of a queue whose number was counted. */
    const lookAt = (place: Place, found: number | undefined) =>
      Effect.gen(function* () {
        let browsed = 0
        const select = ({ metadata }: { readonly metadata: Parameters<Returned["see"]>[0] }) => {
          browsed++
          comeBacks.see(metadata)
          return false
        }
        const work: Sweep.Work = { select, copy: "look", onStep: () => {} }
        const { summary } = yield* Sweep.run(broker, place.queue, {}, work)
        place.at = now()
        if (found !== undefined) place.come = Math.max(place.come, found - (place.base ?? found))
        place.known = found
        place.fresh = 0
        place.isHidden = (summary.held ?? 0) > 0
        place.unseen = Math.max(0, Math.min((found ?? 0) - browsed, place.come - comeBacks.all()))
      })

    return {
      add,
      published: (letter, copy) => {
        if (copy.place?.queue !== undefined && letter.place?.queue === undefined) entered++
      },
      swept: (removed) => {
        const [own] = places
        if (own?.known === undefined || own.base === undefined) return
        own.known -= removed
        own.base -= removed
      },
      look: (isLast) =>
        Effect.forEach(
          places,
          (place) =>
            Effect.gen(function* () {
              const letters = lettersIn(yield* broker.admin.counts(place.queue))
              const isOpen = place.unseen > 0 && place.isHidden
              const hasGrown = letters === undefined || place.known === undefined || letters > place.known || isOpen
              const isDue = isLast ? hasGrown || letters !== place.known : hasGrown && now() - place.at >= pause
              place.fresh = letters === undefined ? Number.POSITIVE_INFINITY : Math.max(0, letters - (place.known ?? 0))
              if (isDue) yield* lookAt(place, letters)
            }),
          { discard: true }
        ),
      waiting,
      unseen: () => places.reduce((sum, { unseen }) => sum + unseen, 0),
      fresh: () => places.reduce((sum, { fresh }) => sum + fresh, 0)
    }
  })

/**
 * Returns the number of letters in a queue, including those that a reader holds; `undefined` if the broker does not count.
 */
const lettersIn = ({ inFlight = 0, isRead, ready }: Broker.Counts): number | undefined =>
  ready === undefined ? undefined : ready + (isRead === false ? 0 : inFlight)
