import { firstOf, type Broker, type Source, type StartOptions } from "./Broker.ts"
import * as rabbitmq from "./rabbitmq.ts"

/** One row per broker that this package knows. */
export const brokers: {
  readonly [name: string]: { readonly sources: ReadonlyArray<Source>; readonly remedy: (version?: string) => string }
} = { rabbitmq }

/** Starts a broker, or finds a running one. It is disposed of when this process ends, unless that was done before. */
export const start = (name: "rabbitmq", options: StartOptions = {}): Promise<Broker> => {
  const broker = brokers[name]
  if (broker === undefined)
    throw new RangeError(`start: broker must be ${Object.keys(brokers).join(" or ")}, got ${name}`)
  return firstOf(broker.sources, options, broker.remedy(options.version))
}
