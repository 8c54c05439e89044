/** The region of a queue, from its ARN or URL. Pure. */
import { ConfigurationError } from "@requeue/core/port"
import type { Settings } from "../../SqsOptions.ts"
import type * as Names from "../names.ts"

/**
 * Returns an error for a queue in another region. Calls go to the connection's region, and would reach another queue.
 */
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
        remedy: `Set the region in the connection's URL to ${region}, or use a queue in ${address.region}`
      })
