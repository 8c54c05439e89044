/** The parts of the adapter, put together. */
import { type Broker, type BrokerError, Connection } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../SqliteOptions.ts"
import * as Capabilities from "./capabilities.ts"
import type { Driver } from "./client.ts"
import * as Store from "./connect/store.ts"
import { subscribe } from "./consume/subscribe.ts"
import * as Inbox from "./inbox.ts"
import * as Admin from "./inspect/admin.ts"
import { publish } from "./publish/publisher.ts"
import { publishWithin } from "./publish/publishWithin.ts"

/** A broker, and its file for tests. */
export interface Opened {
  readonly broker: Broker.Service
  readonly store: Store.Store
}

/** Opens a broker that lives until the scope closes. */
export const open = (settings: Settings, driver: Driver): Effect.Effect<Opened, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const capabilities = Capabilities.make(settings)
    const connection = Connection.track("up", () => clock.currentTimeMillisUnsafe())
    const store = yield* Store.make({ ...settings, path: driver.resolve(settings.path) }, driver, connection.set)
    const broker: Broker.Service = {
      capabilities,
      connection: connection.current,
      publish: (messages) => publish(messages, store, capabilities.maxBodySize),
      publishWithin: capabilities.transactions
        ? (transaction, messages) => publishWithin(transaction, messages, store, capabilities.maxBodySize)
        : undefined,
      inbox: capabilities.transactions ? Inbox.make(store) : undefined,
      subscribe: (options) => subscribe(options, store, capabilities),
      admin: Admin.make(store)
    }
    return { broker, store }
  })
