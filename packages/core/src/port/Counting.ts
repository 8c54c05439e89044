/** Counts of a queue within a time limit. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Counts, Service } from "./Broker.ts"
import { BrokerError } from "./BrokerError.ts"
import * as Delay from "../message/Delay.ts"

/** Time limit in milliseconds for counts that a command only adds to its main result. */
export const brief = 1000

/** Returns the counts, or fails with `Timeout` after `millis` milliseconds, even if the call cannot be interrupted. */
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
