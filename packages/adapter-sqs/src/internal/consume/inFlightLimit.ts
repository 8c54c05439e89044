/**
 * Tells when so many messages of a queue are in flight that retries must not add to them. A message that is hidden
 * until its retry is in flight, and SQS delivers nothing more above its quota of messages in flight.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */
import * as Effect from "effect/Effect"

/** Milliseconds for which SQS's count is used. When it comes, it is up to a minute old anyway. */
const freshness = 30_000

/** The limit of one queue. */
export interface InFlightLimit {
  /** Whether the limit is reached, by the last count. Asks SQS for another count when that is old. */
  readonly isReached: () => boolean
  /** SQS has refused to deliver more. */
  readonly overLimit: () => void
}

/** A limit that is not reached as long as nothing was counted, unless it is 0. */
export const make = (env: {
  /** Messages in flight from which on the limit is reached; 0: always. */
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
