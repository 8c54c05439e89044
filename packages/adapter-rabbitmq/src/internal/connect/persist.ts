/** Doing what fails again and again until it succeeds: ever more slowly, and without filling the log. */
import { type BrokerError, Reconnect } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Settings } from "../../RabbitMqOptions.ts"

export const persist = <A>(
  effect: Effect.Effect<A, BrokerError.BrokerError>,
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
  const pause = Effect.flatMap(Random.next, (random) =>
    Effect.sleep(Reconnect.pause(attempt, random, { first: settings.reconnectFirst, max: settings.reconnectMax }))
  )
  return Effect.andThen(attempt === 0 ? Effect.void : pause, effect).pipe(
    Effect.tapError((error) =>
      Reconnect.isTold(attempt)
        ? Effect.annotateLogs(Effect.logWarning(complaint), { ...about, attempt, error: error.message })
        : Effect.void
    ),
    Effect.catch(() => persist(effect, { ...options, attempt: attempt + 1 }))
  )
}
