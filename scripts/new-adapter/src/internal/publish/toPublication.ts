/** From an outgoing message to Acme's. Pure. */
import { BrokerError, Metadata, type Outgoing } from "@requeue/core/port"
import { capabilities } from "../capabilities.ts"
import type { Publication } from "../client.ts"

/** The message, or why Acme cannot accept it. */
export const toPublication = (message: Outgoing.Outgoing): Publication | BrokerError.BrokerError => {
  const { body, delay, headers, metadata, queue } = message
  if (body.length > capabilities.maxBodySize) {
    return new BrokerError.BrokerError({
      broker: "acme",
      operation: "publish",
      queue,
      reason: "BodyTooLarge",
      detail: `the body has ${body.length} bytes, Acme takes ${capabilities.maxBodySize}`,
      remedy: "Send a smaller body"
    })
  }
  return { queue, body, delay, headers: { ...headers, [Metadata.header]: Metadata.encode(metadata) } }
}
