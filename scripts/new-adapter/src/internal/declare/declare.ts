/**
 * Creates the queues that are missing, where the options allow it. Acme is asked at every use: where that costs too much,
 * remember what is there, until the connection is lost (MUST 6).
 */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"

/** Ends when all of these queues are there. With `create: false` it does nothing. */
export const declare = (
  queues: ReadonlyArray<string>,
  { client, deadlines, settings }: Tools
): Effect.Effect<void, BrokerError.BrokerError> =>
  settings.create
    ? Effect.forEach(queues, (queue) => call({ operation: "declare", queue }, deadlines, () => client.declare(queue)), {
        discard: true
      })
    : Effect.void
