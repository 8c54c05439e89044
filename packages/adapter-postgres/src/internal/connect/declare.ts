/** Creates queues outside of programs' transactions: other senders would wait for the end of such a transaction. */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Context } from "../toBrokerError.ts"
import type { Store } from "./store.ts"

/** Creates missing queues. */
export const declare = (
  queues: ReadonlyArray<string>,
  context: Context,
  { declareAll }: Store
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.callback((resume) =>
    declareAll(queues, 1, context, (error) => resume(error === undefined ? Effect.void : Effect.fail(error)))
  )
