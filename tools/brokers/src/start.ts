import { firstOf, type Broker, type Source, type StartOptions } from "./Broker.ts"
import * as nsq from "./nsq.ts"
import type { NsqBroker, NsqStartOptions } from "./nsq.ts"
import * as postgres from "./postgres.ts"
import type { PostgresStartOptions } from "./postgres.ts"
import * as rabbitmq from "./rabbitmq.ts"
import type { RabbitMqStartOptions } from "./rabbitmq.ts"
import type { RabbitMqBroker } from "./RabbitMqNode.ts"
import * as sqs from "./sqs.ts"
import type { SqsBroker } from "./sqs/SqsNode.ts"

/** A kind of broker. */
export interface Kind {
  /** Its sources, in the order in which they are tried. */
  readonly sources: ReadonlyArray<Source>
  /** The numbers of nodes that it can have. */
  readonly nodeCounts: ReadonlyArray<number>
  /** The error message for when no source has one. */
  readonly remedy: (version?: string) => string
  /** Whether the server at this address accepts connections. */
  readonly answers: (url: string) => Promise<boolean>
  /** Whether the newest starts without a download. Default: true. */
  readonly isAtHand?: () => boolean
  /** The servers that `version` may name, if several speak the same protocol. */
  readonly servers?: ReadonlyArray<string>
}

export const names = ["rabbitmq", "nsq", "sqs", "postgres"] as const

export type BrokerName = (typeof names)[number]

export const kinds: Readonly<Record<BrokerName, Kind>> = { rabbitmq, nsq, sqs, postgres }

/**
 * Checks that a broker can be started here: it installs what is missing, with lines about its progress. Throws `Unavailable`,
 * with a remedy, if that is impossible.
 */
export const prepare = async (name: BrokerName): Promise<void> => {
  if (kinds[name].isAtHand?.() === false) await (await start(name)).dispose()
}

export const isName = (text: unknown): text is BrokerName => names.some((name) => name === text)

/** Starts a broker, or finds a running one. It ends with this process at the latest. */
export function start(name: "rabbitmq", options?: RabbitMqStartOptions): Promise<RabbitMqBroker>
export function start(name: "nsq", options?: NsqStartOptions): Promise<NsqBroker>
export function start(name: "sqs", options?: StartOptions): Promise<SqsBroker>
export function start(name: "postgres", options?: PostgresStartOptions): Promise<Broker>
export function start(name: BrokerName, options?: StartOptions): Promise<Broker>
export async function start(name: BrokerName, options: StartOptions = {}): Promise<Broker> {
  if (!isName(name)) throw new RangeError(`start: broker must be ${names.join(" or ")}, got ${String(name)}`)
  if (process.env["REQUEUE_NO_SERVERS"] === "1") {
    const remedy = "a test that needs a server imports @requeue/brokers, if only a type of it"
    throw new Error(`start: there is no ${name} where REQUEUE_NO_SERVERS=1: ${remedy}`)
  }
  const { nodeCounts, remedy, sources } = kinds[name]
  if (options.nodes !== undefined && !nodeCounts.includes(options.nodes)) {
    throw new RangeError(`start: ${name} has ${nodeCounts.join(" or ")} nodes, got ${options.nodes}`)
  }
  return firstOf(sources, options, remedy(options.version))
}
