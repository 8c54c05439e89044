/** Requests to the server as Effects, with a typed error and a time limit, which the driver lacks. */
import { BrokerError, Delay } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type ErrorContext, toBrokerError } from "../toBrokerError.ts"

/** An option that limits a wait. */
export type TimeoutOption = "publishTimeout" | "requestTimeout"

/** The remedy when waiting for a connection or channel exceeded this option. */
export const unreached = (option: TimeoutOption): string =>
  `Check that the server runs and can be reached; the connection is reopened automatically. Or raise ${option}`

const reopened = "The connection is reopened automatically: try again then"

/**
 * Returns the error text for a missing connection. `refusal` is the error of the last attempt to connect. With a
 * refusal, raising the time limit does not help. The text then omits the limit, because a caller that joins a wait
 * begins later.
 */
export const unconnected = (
  millis: number,
  option: TimeoutOption,
  refusal: BrokerError.BrokerError | undefined
): Pick<BrokerError.BrokerError, "detail" | "remedy"> => {
  if (refusal === undefined)
    return { detail: `no connection within ${Delay.format(millis)}`, remedy: unreached(option) }
  const { detail, remedy = "Check that the server runs and can be reached" } = refusal
  return { detail: `no connection: ${detail}`, remedy: `${remedy}${remedy.endsWith("?") ? "" : "."} ${reopened}` }
}

/** Makes the error of a request that the server did not answer within `millis`, the value of `option`. */
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
    detail: `no answer within ${Delay.format(millis)}${operation === "counts" ? "" : "; the outcome is unknown"}`,
    remedy:
      option === "publishTimeout"
        ? "Check the load of the server and send it again with the same id, or raise publishTimeout"
        : "Check the load of the server and try again, or raise requestTimeout"
  })

/** Runs a request of the driver. Fails with `Timeout` after `millis` milliseconds. */
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
