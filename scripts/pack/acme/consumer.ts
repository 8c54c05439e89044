/** A library on top of the adapter: the compiler must be able to name, in its declarations, every type that is inferred. */
import { adapter, make } from "@acme/requeue-broker"
import { MemoryBroker } from "@requeue/adapter-memory"
import { loadConfig } from "@requeue/config"
import { Adapters, Consumer, Producer } from "@requeue/core"
import { OptionKind } from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"

export const open = () => connect("acme:", { adapters: [adapter] })
export const configured = () => loadConfig({ adapters: [adapter] })
export const broker = Effect.flatMap(make({ url: new URL("acme:") }), (made) => Effect.succeed({ made }))
export const layer = Adapters.layer({ url: "acme:", adapter })
export const memory = MemoryBroker.layer()
export const decode = AdapterOptions.decoder("acme", { order: OptionKind.nonEmpty })
export const operations = adapter.operations
export const program = Effect.gen(function* () {
  const consumer = yield* Consumer.start("orders", {}, ({ body }) => Effect.succeed(body))
  return { consumer, orders: yield* Producer.make("orders") }
})
