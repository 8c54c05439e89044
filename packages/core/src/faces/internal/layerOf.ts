/** Makes the layer of a connection: the broker, its store and telemetry. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Delay from "../../message/Delay.ts"
import * as Telemetry from "../../observe/Telemetry.ts"
import { ConfigurationError } from "../../options/ConfigurationError.ts"
import { Broker } from "../../port/Broker.ts"
import * as Store from "../../store/Store.ts"
import * as Adapters from "../Adapters.ts"
import type { ConnectOptions } from "./options.ts"
import { patient } from "./patient.ts"
import { resolve } from "./resolve.ts"

/** In milliseconds. In a new deployment, the broker's container may start later than the program's. */
const defaultWait = 30_000

/** Makes an error about the options of a store name the store. */
const inStore = (error: unknown): unknown => {
  if (!(error instanceof ConfigurationError)) return error
  const { broker, cause, detail, field: option, queue, remedy } = error
  const field = option === "url" ? "store" : `store.${option}`
  return new ConfigurationError({ field, detail, remedy, broker, queue, cause })
}

const isLayer = <E>(broker: Adapters.Address | Layer.Layer<Broker, E>): broker is Layer.Layer<Broker, E> =>
  Layer.isLayer(broker)

/** Makes the layer, whose parts wait for their brokers. Rejects with `ConfigurationError` if an adapter cannot be found. */
export const layerOf = async <E>(
  broker: Adapters.Address | Layer.Layer<Broker, E>,
  { adapters, inboxRetention, store, storeNamespace, telemetry, waitForBroker = defaultWait }: ConnectOptions
): Promise<Layer.Layer<Broker, unknown>> => {
  const wait = Delay.toMillis(waitForBroker)
  const patiently = async (given: Adapters.Address | Layer.Layer<Broker, unknown>, name: string) => {
    if (isLayer(given)) return patient(given, wait, name)
    const resolved = await resolve(given, { adapters })
    return patient(Adapters.layerOf(resolved), wait, resolved.scheme)
  }
  const storeOf = async (given: NonNullable<ConnectOptions["store"]>) => {
    if (isLayer(given)) return patiently(given, "store")
    const made = await patiently(given, "store").catch((error: unknown) => {
      throw inStore(error)
    })
    return made.pipe(Layer.catch((error) => Layer.effect(Broker, Effect.fail(inStore(error)))))
  }
  const alone = await patiently(broker, "broker")
  const ofStore = { inboxRetention, storeNamespace }
  const layer = store === undefined ? alone : Store.layer(alone, await storeOf(store), ofStore)
  return telemetry === undefined ? layer : Layer.merge(layer, Layer.succeed(Telemetry.Telemetry, telemetry))
}
