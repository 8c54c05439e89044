/** The operators' view of a queue. */
import type { Broker } from "@requeue/core/port"
import { Browser } from "@requeue/kit"
import { capabilities } from "../capabilities.ts"
import { subscribe } from "../consume/subscribe.ts"
import { call } from "../toBrokerError.ts"
import type { Tools } from "../tools.ts"

/** Asks Acme itself, and browses by a subscription. */
export const make = (tools: Tools): Broker.Admin => {
  const { client, deadlines } = tools
  // A broker that can show messages without delivering them needs a native browser.
  const browsable: Browser.Subscribable = {
    capabilities,
    subscribe: (options) => subscribe(options, tools),
    exists: (queue) => call({ operation: "browse", queue }, deadlines, () => client.exists(queue))
  }
  return {
    counts: (queue) => call({ operation: "counts", queue }, deadlines, () => client.depths(queue)),
    purge: (queue) => call({ operation: "purge", queue }, deadlines, () => client.purge(queue)),
    browse: (options) => Browser.overSubscription(browsable, options)
  }
}
