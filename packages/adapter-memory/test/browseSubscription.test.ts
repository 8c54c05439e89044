/** A browser over a subscription, where the broker offers nothing better: it does what all browsers do. */
import { Cases, Suite } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import { Browser } from "@requeue/kit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterAll, describe, test } from "vitest"
import { layer } from "./conformanceLayer.ts"
import { variants } from "./conformanceOptions.ts"

const subscribed = (broker: Broker.Service): Broker.Service => {
  const exists = (queue: string) => Effect.map(broker.admin.counts(queue), ({ isMissing }) => isMissing !== true)
  return {
    ...broker,
    capabilities: { ...broker.capabilities, delayedMessages: false },
    admin: { ...broker.admin, browse: (options) => Browser.overSubscription({ ...broker, exists }, options) }
  }
}

const cases = Cases.cases.filter(({ group }) => group === "browsing")

for (const [name, options] of Object.entries(variants)) {
  Suite.register(
    { describe, test, afterAll },
    {
      name: `browsers over subscriptions, ${name}`,
      layer: Layer.provideMerge(Layer.effect(Broker.Broker, Effect.map(Broker.Broker, subscribed)), layer(options)),
      cases,
      virtualTime: true
    }
  )
}
