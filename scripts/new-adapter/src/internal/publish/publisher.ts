/** Publishes messages, and ends when Acme has confirmed all of them. MUST 1 and 7. */
import { BrokerError, type Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Publication } from "../client.ts"
import { declare } from "../declare/declare.ts"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"
import { toPublication } from "./toPublication.ts"

/** Publishes all, or fails; after a failure any part of them may have been published. */
export const publish = (
  messages: ReadonlyArray<Outgoing.Outgoing>,
  tools: Tools
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const publications: Array<Publication> = []
    for (const message of messages) {
      const publication = toPublication(message)
      if (publication instanceof BrokerError.BrokerError) return yield* publication
      publications.push(publication)
    }
    const queues = [...new Set(messages.map(({ queue }) => queue))]
    yield* declare(queues, tools)
    const queue = queues.length === 1 ? queues[0] : undefined
    yield* call({ operation: "publish", queue }, tools.deadlines, () => tools.client.publish(publications))
  })
