/** One request to the server as an Effect: with a time limit, because the driver has none, and with a typed error. */
import { BrokerError, Delay } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Context, toBrokerError } from "../toBrokerError.ts"

export const timedOut = ({ operation, queue }: Context, millis: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation,
    queue,
    reason: "Timeout",
    detail: `no answer within ${Delay.format(millis)}; the outcome is unknown`
  })

export const request = <A>(
  context: Context,
  millis: number,
  ask: () => Promise<A>
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.tryPromise({ try: ask, catch: (cause) => toBrokerError(cause, context) }).pipe(
    Effect.timeoutOrElse({
      duration: Duration.millis(millis),
      orElse: () => Effect.fail(timedOut(context, millis))
    })
  )
