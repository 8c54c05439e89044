/**
 * Detects when too many messages of a queue are in flight for retries to add to them. A message that is hidden until
 * its retry is in flight, and SQS stops delivering at its quota of messages in flight.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */
import * as Effect from "effect/Effect"

/** Milliseconds for which SQS's count is used. It may already be a minute old on arrival. */
const freshness = 30_000

/** The limit of one queue. */
export interface InFlightLimit {
  /** Whether the limit is reached, by the last count. Requests a new count if that is old. */
  readonly isReached: () => boolean
  /** SQS has refused to deliver more messages. */
  readonly overLimit: () => void
}

/** Makes a limit that is not reached before the first count, unless it is 0. */
export const make = (env: {
  /** The limit of messages in flight; 0: always reached. */
  readonly limit: number
  /** Counts the messages in flight. */
  readonly count: Effect.Effect<number, unknown>
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): InFlightLimit => {
  let inFlight = 0
  let countedAt = Number.NEGATIVE_INFINITY

  const refresh = Effect.ignore(
    Effect.map(env.count, (count) => {
      inFlight = count
    })
  )

  return {
    isReached: () => {
      if (env.limit > 0 && env.now() - countedAt > freshness) {
        countedAt = env.now()
        env.fork(refresh)
      }
      return inFlight >= env.limit
    },
    overLimit: () => {
      inFlight = Number.POSITIVE_INFINITY
      countedAt = env.now()
    }
  }
}
