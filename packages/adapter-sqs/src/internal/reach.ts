/** Whether SQS answers. */
import { BrokerError, Failure } from "@requeue/core/port"
import { TlsOptions } from "@requeue/kit"
import * as Effect from "effect/Effect"
import { textIn } from "./answer.ts"
import type { Client } from "./client.ts"
import { credentials, foreign } from "./explain.ts"
import { isTransient, NotSent, toBrokerError } from "./toBrokerError.ts"

/** The name of a queue that need not exist. */
const probe = "requeue-is-sqs-there"

/** Errors of SQS are JSON, and have names; those of a proxy in front of it are not, or have none. */
const isNamed = (cause: unknown): boolean => !/^(Unknown(Error)?|SyntaxError)$/.test(Failure.summarize(cause).name)

/** The error that keeps SQS from being reached; `undefined` for an answer of SQS. */
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
 * Asks SQS for the URL of a queue that need not exist. Any answer of SQS succeeds: also that the queue is missing, or that the
 * identity has no permission. It fails when there is no answer, when another server answers, while SQS is not available, and
 * when SQS refuses the credentials.
 */
export const reach = (client: Pick<Client, "getQueueUrl">): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.tryPromise({
    try: async () => textIn(await client.getQueueUrl({ QueueName: probe }), "QueueUrl"),
    catch: obstacle
  }).pipe(
    Effect.catch((error) => (error === undefined ? Effect.void : Effect.fail(error))),
    Effect.asVoid
  )
