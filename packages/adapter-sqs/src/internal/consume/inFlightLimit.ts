/**
 * Whether so many messages of a queue are in flight that retries must not add to them: SQS hands out no more above its
 * quota, and a message that waits for its retry by visibility is in flight.
 */
import * as Effect from "effect/Effect"

/** How long SQS's estimate is good for, in milliseconds. It is about a minute old anyway. */
const freshness = 30_000

export interface Crowd {
  readonly isCrowded: () => boolean
  /** SQS refused to hand out more. */
  readonly overLimit: () => void
}

export const make = (env: {
  /** Messages in flight above which there is a crowd. */
  readonly limit: number
  readonly inFlight: Effect.Effect<number, unknown>
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): Crowd => {
  let estimate = 0
  let askedAt = Number.NEGATIVE_INFINITY

  const refresh = Effect.ignore(
    Effect.map(env.inFlight, (count) => {
      estimate = count
    })
  )

  return {
    isCrowded: () => {
      if (env.limit > 0 && env.now() - askedAt > freshness) {
        askedAt = env.now()
        env.fork(refresh)
      }
      return estimate >= env.limit
    },
    overLimit: () => {
      estimate = Number.POSITIVE_INFINITY
      askedAt = env.now()
    }
  }
}
