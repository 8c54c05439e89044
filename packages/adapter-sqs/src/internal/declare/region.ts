/** The region of a queue, which its ARN or URL may tell. Pure. */
import { ConfigurationError } from "@requeue/core/port"
import type { Settings } from "../../SqsOptions.ts"
import type * as Names from "../names.ts"

/** A call goes to the region of its connection, whatever the queue's name says: it would be another queue. */
export const inOtherRegion = (
  given: string,
  { region }: Names.Name,
  queue: string,
  { address }: Settings
): ConfigurationError.ConfigurationError | undefined =>
  region === undefined || region === address.region
    ? undefined
    : new ConfigurationError.ConfigurationError({
        broker: "sqs",
        queue,
        field: given === queue ? "queue" : "retry.deadLetter",
        detail: `${given} is in ${region}, the connection is to ${address.region}`,
        remedy: `Connect to ${region} by the connection's URL, or name a queue of ${address.region}`
      })
