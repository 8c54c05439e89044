/** Finds the broker and the store that a relay connects, from a config file or from `--url` and `--store`. */
import { Broker, ConfigurationError, Store } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Flag from "effect/cli/Flag"
import { Output } from "./Output.ts"
import * as Target from "./Target.ts"
import * as TextFlag from "./TextFlag.ts"
import { UsageError } from "./UsageError.ts"

const { queue: _, ...ofBroker } = Target.flags

export const flags = {
  ...ofBroker,
  store: TextFlag.make("store").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription("The URL of the database with the outbox, for --url. Default: the store in the config file"),
    Flag.optional
  ),
  storeNamespace: TextFlag.make("store-namespace").pipe(
    Flag.withMetavar("NAME"),
    Flag.filter(
      (name) => Store.kinds.storeNamespace.holds(name),
      () => `must be ${Store.kinds.storeNamespace.expected}`
    ),
    Flag.withDescription("The broker's storeNamespace, for --url. Default: none, or that in the config file"),
    Flag.optional
  )
}

export interface Flags extends Omit<Target.Flags, "queue"> {
  readonly store: Option.Option<string>
  readonly storeNamespace: Option.Option<string>
}

/** A broker and its store, not yet connected. */
export interface RelayTarget {
  readonly broker: Target.Place
  readonly store: Target.Place
  readonly storeNamespace: string | undefined
}

/** Finds the broker and the store that the flags name. Does not connect. */
export const resolve = ({ store, storeNamespace, ...rest }: Flags) =>
  Effect.gen(function* () {
    const given: Target.Flags = { ...rest, queue: [] }
    const config = yield* Target.configuration(given)
    if (config === undefined && Option.isNone(store)) {
      return yield* new UsageError({ detail: "--url requires --store", remedy: "Give --store with a database's URL" })
    }
    if (config !== undefined && (Option.isSome(store) || Option.isSome(storeNamespace))) {
      const flag = Option.isSome(store) ? "store" : "store-namespace"
      const remedy = "Give --url, or write the store into the config file"
      return yield* new UsageError({ detail: `--${flag} requires --url`, remedy })
    }
    const name = Option.getOrUndefined(given.broker)
    const broker = yield* Target.placeOf(config, given, name)
    const named = config?.store(name)
    if (config !== undefined && named === undefined) {
      const detail = `${config.file} gives the broker ${broker.name} no store, so it has no outbox`
      return yield* new UsageError({ detail, remedy: "Give --broker with one that has a store" })
    }
    const database = yield* Target.placeOf(config, { ...given, url: store, adapter: Option.none() }, named)
    const target: RelayTarget = {
      broker,
      store: database,
      storeNamespace: config?.connectOptions(name).storeNamespace ?? Option.getOrUndefined(storeNamespace)
    }
    return target
  })

/** Makes the layer of the connected broker with its store. */
export const layer = ({ broker, store, storeNamespace }: RelayTarget) => {
  const connected = (place: Target.Place, output: Output["Service"]) =>
    Layer.provide(Target.layer(place), Layer.succeed(Output, output))
  const joined = Effect.map(Output, (output) =>
    Store.layer(connected(broker, output), connected(store, output), { storeNamespace })
  )
  return Layer.unwrap(joined).pipe(
    Layer.catch((error) =>
      Layer.effect(
        Broker.Broker,
        Effect.fail(error instanceof ConfigurationError.ConfigurationError ? broker.locate(error) : error)
      )
    )
  )
}
