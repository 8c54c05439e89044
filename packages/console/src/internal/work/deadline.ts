/** Limits on how long a page waits. */
import { Delay } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Trouble } from "./connections.ts"

/**
 * Limits the wait for a broker. It interrupts late work without waiting for its end: a driver's call may not be interruptible.
 */
export const within =
  (broker: string, millis: number) =>
  <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | Trouble> =>
    Effect.flatMap(Effect.forkDetach(effect, { startImmediately: true }), (fiber) => {
      const abandon = Effect.forkDetach(Fiber.interrupt(fiber))
      const late = new Trouble({ broker, message: `no answer within ${Delay.format(millis)}` })
      return Effect.timeoutOrElse(Fiber.join(fiber), {
        duration: millis,
        orElse: () => Effect.andThen(abandon, Effect.fail(late))
      }).pipe(Effect.onInterrupt(() => abandon))
    })
