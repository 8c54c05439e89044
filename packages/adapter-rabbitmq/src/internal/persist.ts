/** Doing what fails again and again until it succeeds: ever more slowly, and without filling the log. */
import type { BrokerError } from "@requeue/core/BrokerError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Settings } from "../RabbitMqOptions.ts"

/** Waits before the nth attempt in a row: none before the first, then growing, each spread by half. */
const pause = (attempt: number, { reconnectFirst, reconnectMax }: Settings): Effect.Effect<void> =>
  attempt === 0
    ? Effect.void
    : Effect.flatMap(Random.next, (random) => {
        const full = Math.min(reconnectFirst * 1.5 ** (attempt - 1), reconnectMax)
        return Effect.sleep(Duration.millis(full * (0.5 + random / 2)))
      })

/** The first failures of an outage are told, then every twentieth. */
const isTold = (attempt: number): boolean => attempt < 2 || attempt % 20 === 0

export const persist = <A>(
  effect: Effect.Effect<A, BrokerError>,
  options: {
    readonly settings: Settings
    /** What the log says of a failure, and about whom. */
    readonly complaint: string
    readonly about: Readonly<Record<string, unknown>>
    /** Attempts that have failed already. Default: 0. */
    readonly attempt?: number
  }
): Effect.Effect<A> => {
  const { about, attempt = 0, complaint, settings } = options
  return Effect.andThen(pause(attempt, settings), effect).pipe(
    Effect.tapError((error) =>
      isTold(attempt)
        ? Effect.annotateLogs(Effect.logWarning(complaint), { ...about, attempt, error: error.message })
        : Effect.void
    ),
    Effect.catch(() => persist(effect, { ...options, attempt: attempt + 1 }))
  )
}
