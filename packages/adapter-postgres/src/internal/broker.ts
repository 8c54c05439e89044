/** The parts of the adapter, put together. */
import { type Broker, type BrokerError, Connection } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../PostgresOptions.ts"
import * as Capabilities from "./capabilities.ts"
import type { Driver } from "./client.ts"
import * as Store from "./connect/store.ts"
import { subscribe } from "./consume/subscribe.ts"
import * as Inbox from "./inbox.ts"
import * as Admin from "./inspect/admin.ts"
import * as Publisher from "./publish/publisher.ts"
import { publishWithin } from "./publish/publishWithin.ts"
import * as Changes from "./settle/changes.ts"

/** Opens a broker that lives until the scope closes. */
export const open = (
  settings: Settings,
  driver: Driver
): Effect.Effect<Broker.Service, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const capabilities = Capabilities.make(settings)
    const connection = Connection.track("up", () => clock.currentTimeMillisUnsafe())
    const store = yield* Store.make(settings, driver, connection.set)
    const publisher = Publisher.make(store, capabilities.maxBodySize)
    const changes = Changes.make(store)
    return {
      capabilities,
      connection: connection.current,
      publish: publisher.publish,
      publishWithin: (transaction, messages) => publishWithin(transaction, messages, store, publisher),
      inbox: Inbox.make(store),
      subscribe: (options) => subscribe(options, store, changes),
      admin: Admin.make(store, changes)
    }
  })
