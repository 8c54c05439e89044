/**
 * Watches the dead-letter queues to which letters may come back, and the queues that they were redriven to.
 *
 * A look hands letters out, which hides them from others and, on some brokers, counts as a delivery. So counts come first, and
 * a look only where a queue has grown, or where nobody can tell.
 */
import type { Broker, BrokerError } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Returned } from "./returned.ts"
import * as Sweep from "./sweep.ts"
import * as Waiting from "./waiting.ts"

export interface Watch {
  /** Watches further dead-letter queues. Must be done before letters can come back to them. */
  readonly add: (queues: ReadonlyArray<string>) => Effect.Effect<void, BrokerError.BrokerError>
  /** Must be called when the redrive has removed letters from its queue. */
  readonly swept: (removed: number) => void
  /**
   * Looks at the dead-letter queues that have grown, with pauses between two looks. The last look of a stage happens at once,
   * and also where letters are missing, which may hide as many that have come.
   */
  readonly look: (isLast: boolean) => Effect.Effect<void, BrokerError.BrokerError>
  /** Counts what waits where letters were redriven to. */
  readonly waiting: Waiting.Count
  /** Letters that came into a dead-letter queue since the watch began, and that no look has reached. */
  readonly unseen: () => number
  /** At most so many letters have come into the dead-letter queues since the last looks, which the next ones will reach. */
  readonly fresh: () => number
}

/** Milliseconds between two looks. */
const pause = 5000

interface Place {
  readonly queue: string
  /** Letters that were there when the watch began, without those that were redriven; `undefined` where the broker cannot count. */
  base: number | undefined
  /** Letters that the last look knew of. */
  known: number | undefined
  /** Letters that have come since the watch began. */
  come: number
  unseen: number
  /** Letters that have come since the last look. */
  fresh: number
  /** Whether somebody had letters during the last look, such as the look before, so that another one may see more. */
  isHidden: boolean
  /** When it was looked at last. */
  at: number
}

/** `queues` are the dead-letter queues; the redrive takes its letters from the first one. */
export const make = (
  broker: Broker.Service,
  queues: ReadonlyArray<string>,
  comeBacks: Returned
): Effect.Effect<Watch, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const waiting = yield* Waiting.make(broker, comeBacks.isOurs)
    const places: Array<Place> = []
    const has = (queue: string): boolean => places.some((place) => place.queue === queue)
    const add: Watch["add"] = (queues) =>
      Effect.gen(function* () {
        for (const queue of queues) {
          if (has(queue)) continue
          const known = lettersIn(yield* broker.admin.counts(queue))
          // Another letter may have added it meanwhile, and may be there already.
          if (has(queue)) continue
          const at = Number.NEGATIVE_INFINITY
          places.push({ queue, base: known, known, come: 0, unseen: 0, fresh: 0, isHidden: false, at })
        }
      })
    yield* add(queues)

    /** Looks at the letters of a place, of which so many have been counted. */
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

/** The letters that a queue has, those that somebody looks at included; `undefined` where the broker does not count. */
const lettersIn = ({ inFlight = 0, isRead, ready }: Broker.Counts): number | undefined =>
  ready === undefined ? undefined : ready + (isRead === false ? 0 : inFlight)
