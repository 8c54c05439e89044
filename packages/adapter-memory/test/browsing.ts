/** A broker whose browsers are others. */
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"

/** Changes every browser of a broker that is asked for this queue. */
export const browsing =
  (change: (browser: Broker.Browser) => Partial<Broker.Browser>, name = "q.dlq") =>
  (broker: Broker.Service): Broker.Service => ({
    ...broker,
    admin: {
      ...broker.admin,
      browse: (options) =>
        Effect.map(broker.admin.browse(options), (browser) =>
          options.queue === name ? { ...browser, ...change(browser) } : browser
        )
    }
  })
