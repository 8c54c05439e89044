/** One request to the server as an Effect: with a time limit, because the driver has none, and with a typed error. */
import { BrokerError, Delay } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type ErrorContext, toBrokerError } from "../toBrokerError.ts"

/** An option that limits a wait. */
export type TimeoutOption = "publishTimeout" | "requestTimeout"

/** The remedy where there is no connection or channel, for which so long was waited. */
export const unreached = (option: TimeoutOption): string =>
  `Check that the server runs and can be reached; the connection is reopened automatically. Or raise ${option}`

/** The text of an error after so many milliseconds without a connection, with the reason of the last attempt to connect. */
export const unconnected = (
  millis: number,
  option: TimeoutOption,
  refusal: BrokerError.BrokerError | undefined
): Pick<BrokerError.BrokerError, "detail" | "remedy"> => ({
  detail: `no connection within ${Delay.format(millis)}${refusal === undefined ? "" : `: ${refusal.detail}`}`,
  remedy:
    refusal === undefined || refusal.reason === "ConnectionFailed"
      ? unreached(option)
      : (refusal.remedy ?? unreached(option))
})

/** The error of a request that the server has not answered within so many milliseconds, which this option has set. */
export const timedOut = (
  { operation, queue }: ErrorContext,
  millis: number,
  option: TimeoutOption = "requestTimeout"
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation,
    queue,
    reason: "Timeout",
    detail: `no answer within ${Delay.format(millis)}; the outcome is unknown`,
    remedy:
      option === "publishTimeout"
        ? "Check the load of the server and send it again with the same id, or raise publishTimeout"
        : "Check the load of the server and try again, or raise requestTimeout"
  })

/** Runs a request of the driver. Fails with `Timeout` after so many milliseconds. */
export const request = <A>(
  context: ErrorContext,
  millis: number,
  ask: () => Promise<A>
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.tryPromise({ try: ask, catch: (cause) => toBrokerError(cause, context) }).pipe(
    Effect.timeoutOrElse({
      duration: Duration.millis(millis),
      orElse: () => Effect.fail(timedOut(context, millis))
    })
  )
