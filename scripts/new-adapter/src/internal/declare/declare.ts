/**
 * Creates missing queues, if the options allow it. It asks Acme at every use: if that costs too much, remember existing queues
 * until the connection is lost (MUST 6).
 */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"

/** Ends when all of these queues exist. With `create: false` it does nothing. */
export const declare = (
  queues: ReadonlyArray<string>,
  { client, deadlines, settings }: Tools
): Effect.Effect<void, BrokerError.BrokerError> =>
  settings.create
    ? Effect.forEach(queues, (queue) => call({ operation: "declare", queue }, deadlines, () => client.declare(queue)), {
        discard: true
      })
    : Effect.void
