/**
 * Counts the letters that another reader holds, such as a browser or a consumer. The broker does not show them to others.
 */
import type { Broker, BrokerError } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { heldOf } from "../../internal/heldOf.ts"

/** The counts of a queue: its ready letters, and the letters that a reader holds; `undefined` if unknown. */
export interface Counted extends Broker.Counts {
  readonly held: number | undefined
}

/** Milliseconds that a browser may take to return its letters, and between two counts. */
const timeout = 1000
const interval = 50

/** Milliseconds for which existing letters may be in no count, while a slow broker moves them. */
const lostTimeout = 10_000

/**
 * Counts a queue once no other reader holds its letters, or after the time that browsing may take. `known` is the number of
 * letters that were there before: while the broker counts none of them, this counts again. Default: 0.
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
