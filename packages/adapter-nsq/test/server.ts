/** The nsqd that tests run on, each with a way to it that can be read and broken. */
import { start, type NsqBroker, type NsqStartOptions } from "@requeue/brokers"
import { afterAll } from "vitest"
import type { NsqOptions } from "../src/index.ts"
import { trace, type Trace } from "./wire.ts"

export interface Server {
  readonly broker: NsqBroker
  readonly version: string
  /** Every nsqd, and no nsqlookupd. */
  readonly direct: NsqOptions.Options
  /** The same nsqd through the wires. */
  readonly wired: NsqOptions.Options
  /** The nsqlookupd, and no nsqd; `undefined` when the environment names an nsqd alone. */
  readonly found: NsqOptions.Options | undefined
  /** One in front of each nsqd. */
  readonly wires: readonly [Trace, ...ReadonlyArray<Trace>]
  /** The HTTP interface of each nsqd. */
  readonly http: readonly [string, ...ReadonlyArray<string>]
}

const open = async (options: NsqStartOptions = {}): Promise<Server> => {
  const broker = await start("nsq", options)
  const urls = broker.nodes.length === 0 ? [broker.url] : broker.nodes.map(({ url }) => url)
  const ports = urls.map((url) => Number(new URL(url).port || 4150))
  const wires = await Promise.all(ports.map(trace))
  const at = (port: number) => `127.0.0.1:${port}`
  const http = ports.map((port) => at(port + 1))
  return {
    broker,
    version: broker.version,
    direct: { nsqd: ports.map(at) },
    wired: { nsqd: wires.map(({ port }) => at(port)), nsqdHttp: http },
    found: broker.managementUrl === undefined ? undefined : { lookupd: [new URL(broker.managementUrl).host] },
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

const everywhere = globalThis as { requeueNsq?: Promise<Server> }

/** One nsqd for all files of a worker that neither kill nor restart it. It ends with the worker's process. */
export const shared = (): Promise<Server> => (everywhere.requeueNsq ??= open())
