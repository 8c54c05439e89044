/** Counts of a queue for those who cannot wait long. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Counts, Service } from "./Broker.ts"
import { BrokerError } from "./BrokerError.ts"
import * as Delay from "../message/Delay.ts"

/** Longest wait for counts that are only shown beside something else, in milliseconds. */
export const brief = 1000

/** The counts, or a `Timeout` after so many milliseconds. It does not wait for a call that cannot be interrupted. */
export const within = (
  { admin, capabilities: { broker } }: Service,
  queue: string,
  millis: number
): Effect.Effect<Counts, BrokerError> =>
  Effect.gen(function* () {
    const counting = yield* Effect.forkDetach(Effect.suspend(() => admin.counts(queue)))
    const answer = Effect.timeoutOrElse(Fiber.join(counting), {
      duration: Duration.millis(millis),
      orElse: () => {
        const detail = `the messages were not counted within ${Delay.format(millis)}`
        return Effect.fail(new BrokerError({ broker, operation: "counts", queue, reason: "Timeout", detail }))
      }
    })
    return yield* Effect.ensuring(
      answer,
      Effect.sync(() => counting.interruptUnsafe())
    )
  })
