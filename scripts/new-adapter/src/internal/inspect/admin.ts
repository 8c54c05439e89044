/** The operators' view of a queue. */
import { type Broker, Browser } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { capabilities } from "../capabilities.ts"
import { subscribe } from "../consume/subscribe.ts"
import { toDelivery } from "../consume/toDelivery.ts"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"

/** Asks Acme itself. What is seen by `peek` cannot be settled. */
export const make = (tools: Tools): Broker.Admin => {
  const { client, deadlines } = tools
  // A broker that can show messages without delivering them needs a browser of its own.
  const browsable: Browser.Subscribable = {
    capabilities,
    subscribe: (options) => subscribe(options, tools),
    exists: (queue) => call({ operation: "browse", queue }, deadlines, () => client.exists(queue))
  }
  return {
    counts: (queue) => call({ operation: "counts", queue }, deadlines, () => client.depths(queue)),
    peek: (queue, limit) =>
      Effect.map(
        call({ operation: "peek", queue }, deadlines, () => client.peek(queue, limit)),
        (found) => found.map((received) => ({ ...toDelivery(received), receipt: undefined }))
      ),
    purge: (queue) => call({ operation: "purge", queue }, deadlines, () => client.purge(queue)),
    browse: (options) => Browser.overSubscription(browsable, options)
  }
}
