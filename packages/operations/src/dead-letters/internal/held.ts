/** Letters that another reader has, such as a look or a consumer: the broker shows them to nobody else meanwhile. */
import type { Broker, BrokerError } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { heldOf } from "../../internal/heldOf.ts"

/** The letters that wait in a queue, and those that somebody has; `undefined` where that cannot be told. */
export interface Counted extends Broker.Counts {
  readonly held: number | undefined
}

/** Milliseconds that a look may take to give back what it has, and between two counts. */
const timeout = 1000
const interval = 50

/** Milliseconds for which letters that should be there may be in no count, while a slow broker moves them. */
const lostTimeout = 10_000

/**
 * Counts a queue once no other reader has letters of it, or when that takes longer than a look. `known` letters were there
 * before: while none is in any count, it counts again. Default: 0.
 */
export const count = (
  broker: Broker.Service,
  queue: string,
  known = 0
): Effect.Effect<Counted, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    // A broker may take seconds to count.
    const begun = now()
    while (true) {
      const counts = yield* broker.admin.counts(queue)
      const held = heldOf(counts)
      const isTold = held !== undefined || counts.isRead === true
      const isLost = isTold && counts.ready === 0 && (held ?? 0) === 0 && known > 0
      const isOver = now() - begun >= (isLost ? lostTimeout : timeout)
      if (isOver || !isTold || (held === 0 && !isLost)) return { ...counts, held }
      yield* Effect.sleep(Duration.millis(interval))
    }
  })
