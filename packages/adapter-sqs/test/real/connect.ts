/** The driver itself, for what tests do beside the adapter. */
import { SQS } from "@aws-sdk/client-sqs"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { SqsOptions } from "../../src/index.ts"

/**
 * Where the URL points. Calls are not repeated, so each has a connection to itself: one that is kept may be closed by the
 * server at the moment in which it is used again.
 */
export const connect = (url: string) => {
  const { credentials, endpoint, region } = Result.getOrThrow(SqsOptions.decode({ url })).address
  const sqs = new SQS({
    region,
    maxAttempts: 1,
    requestHandler: { httpAgent: { keepAlive: false } },
    useQueueUrlAsEndpoint: false,
    ...(endpoint && { endpoint }),
    ...(credentials && {
      credentials: {
        accessKeyId: credentials.accessKeyId,
        secretAccessKey: Redacted.value(credentials.secretAccessKey)
      }
    })
  }) // So that it can stand in for a client of the adapter.
  return Object.assign(sqs, { accountId: () => Promise.resolve(undefined) })
}
