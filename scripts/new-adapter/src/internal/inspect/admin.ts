/** The operators' view of a queue. */
import type { Broker } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { toDelivery } from "../consume/toDelivery.ts"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"

/** Asks Acme itself. What is seen by `peek` cannot be settled. */
export const make = ({ client, deadlines }: Tools): Broker.Admin => ({
  counts: (queue) => call({ operation: "counts", queue }, deadlines, () => client.depths(queue)),
  peek: (queue, limit) =>
    Effect.map(
      call({ operation: "peek", queue }, deadlines, () => client.peek(queue, limit)),
      (found) => found.map((received) => ({ ...toDelivery(received), receipt: undefined }))
    ),
  purge: (queue) => call({ operation: "purge", queue }, deadlines, () => client.purge(queue))
})
