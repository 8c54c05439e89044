/** Checks whether SQS answers. */
import { BrokerError, Failure } from "@requeue/core/port"
import { TlsOptions } from "@requeue/kit"
import * as Effect from "effect/Effect"
import { textIn } from "./answer.ts"
import type { Client } from "./client.ts"
import { credentials, foreign } from "./explain.ts"
import { isTransient, NotSent, toBrokerError } from "./toBrokerError.ts"

/** The name of a queue that need not exist. */
const probe = "requeue-is-sqs-there"

/** Whether the error is SQS's: JSON with a name. Errors of a proxy are not JSON or have no name. */
const isNamed = (cause: unknown): boolean => !/^(Unknown(Error)?|SyntaxError)$/.test(Failure.summarize(cause).name)

/** Returns why SQS is unreachable; `undefined` for any response of SQS. */
const obstacle = (cause: unknown): BrokerError.BrokerError | undefined => {
  const error = toBrokerError(cause, { operation: "connect" })
  if (cause instanceof NotSent) return error
  const { broker, detail, operation, remedy } = error
  const isMisconfigured = TlsOptions.isMistake(detail) || remedy === foreign.remedy
  if (isMisconfigured || !isNamed(cause))
    return new BrokerError.BrokerError({
      broker,
      operation,
      reason: "ConnectionFailed",
      detail,
      remedy,
      isMisconfigured
    })
  if (remedy === credentials.remedy) return error
  return isTransient(error) && error.reason !== "Throttled" ? error : undefined
}

/**
 * Asks SQS for the URL of a queue that need not exist. Succeeds with any response of SQS, including a missing queue or
 * permission. Fails without a response, if another server responds, if SQS is unavailable, or if it refuses the
 * credentials.
 */
export const reach = (client: Pick<Client, "getQueueUrl">): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.tryPromise({
    try: async () => textIn(await client.getQueueUrl({ QueueName: probe }), "QueueUrl"),
    catch: obstacle
  }).pipe(
    Effect.catch((error) => (error === undefined ? Effect.void : Effect.fail(error))),
    Effect.asVoid
  )
