import { firstOf, type Broker, type Source, type StartOptions } from "./Broker.ts"
import * as rabbitmq from "./rabbitmq.ts"
import * as sqs from "./sqs.ts"

/** What this package must know about a broker. */
export interface Kind {
  /** In the order in which they are tried. */
  readonly sources: ReadonlyArray<Source>
  /** What to say when none of them has one. */
  readonly remedy: (version?: string) => string
  /** Whether the server at this address accepts connections. */
  readonly answers: (url: string) => Promise<boolean>
  /** What `version` may name, where more than one server speaks the same protocol. */
  readonly servers?: ReadonlyArray<string>
}

export type BrokerName = "rabbitmq" | "sqs"

export const kinds: Readonly<Record<BrokerName, Kind>> = { rabbitmq, sqs }

export const names = Object.keys(kinds) as ReadonlyArray<BrokerName>

export const isName = (text: unknown): text is BrokerName => names.some((name) => name === text)

/** Starts a broker, or finds a running one. It is disposed of when this process ends, unless that was done before. */
export const start = async (name: BrokerName, options: StartOptions = {}): Promise<Broker> => {
  if (!isName(name)) throw new RangeError(`start: broker must be ${names.join(" or ")}, got ${String(name)}`)
  const { remedy, sources } = kinds[name]
  return firstOf(sources, options, remedy(options.version))
}
