/** The nsqd that tests run on, each with a way to it that can be read and broken. */
import { start, type NsqBroker, type NsqStartOptions } from "@requeue/brokers"
import { afterAll } from "vitest"
import type { NsqOptions } from "../../src/index.ts"
import { trace, type Trace } from "../real/traffic.ts"

export interface Server {
  readonly broker: NsqBroker
  /** Every nsqd, and no nsqlookupd. */
  readonly direct: NsqOptions.Options
  /** The same nsqd through the wires. */
  readonly wired: NsqOptions.Options
  /** The nsqlookupd, and no nsqd. */
  readonly found: NsqOptions.Options
  /** One in front of each nsqd. */
  readonly wires: readonly [Trace, ...ReadonlyArray<Trace>]
  /** The HTTP interface of each nsqd. */
  readonly http: readonly [string, ...ReadonlyArray<string>]
}

const at = (port: number): string => `127.0.0.1:${port}`

const open = async (options: NsqStartOptions = {}): Promise<Server> => {
  const broker = await start("nsq", options)
  const ports = broker.nodes.map(({ port }) => port)
  const wires = await Promise.all(ports.map(trace))
  const http = ports.map((port) => at(port + 1))
  return {
    broker,
    direct: { nsqd: ports.map(at) },
    wired: { nsqd: wires.map(({ port }) => at(port)), nsqdHttp: http },
    found: { lookupd: [new URL(broker.managementUrl!).host] },
    wires: wires as [Trace, ...Array<Trace>],
    http: http as [string, ...Array<string>]
  }
}

/** Servers for one test file; they end with the file. */
export const server = async (options?: NsqStartOptions): Promise<Server> => {
  const one = await open(options)
  afterAll(async () => {
    for (const wire of one.wires) await wire.close()
    await one.broker.dispose()
  })
  return one
}
