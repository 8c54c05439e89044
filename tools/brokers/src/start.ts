import { firstOf, type Broker, type Source, type StartOptions } from "./Broker.ts"
import * as rabbitmq from "./rabbitmq.ts"

/** What this package must know about a broker. */
export interface Kind {
  /** In the order in which they are tried. */
  readonly sources: ReadonlyArray<Source>
  /** What to say when none of them has one. */
  readonly remedy: (version?: string) => string
  /** Whether the server at this address accepts connections. */
  readonly answers: (url: string) => Promise<boolean>
}

export const kinds: { readonly [name: string]: Kind } = { rabbitmq }

/** Starts a broker, or finds a running one. It is disposed of when this process ends, unless that was done before. */
export const start = async (name: "rabbitmq", options: StartOptions = {}): Promise<Broker> => {
  const kind = kinds[name]
  if (kind === undefined) throw new RangeError(`start: broker must be ${Object.keys(kinds).join(" or ")}, got ${name}`)
  return firstOf(kind.sources, options, kind.remedy(options.version))
}
