/** A server behind the strict proxy, for the tests that want it to misbehave. */
import { start, strictSqs, Unavailable, type StrictSqs } from "@requeue/brokers"
import { afterAll } from "vitest"
import { connect } from "../real/connect.ts"

export interface Strict {
  readonly name: string
  /** The server's own address over HTTP, for what it has beside queues. */
  readonly endpoint: string
  /** Through the proxy. */
  readonly url: string
  readonly proxy: StrictSqs
  /** The tests' own, straight to the server: faults and counters are not its. */
  readonly behind: ReturnType<typeof connect>
  /** The same through the proxy. */
  readonly client: ReturnType<typeof connect>
  /** A further proxy in front of the same server, with faults and counters of its own. */
  readonly another: (options?: Parameters<typeof strictSqs>[1]) => Promise<StrictSqs>
}

/** A server for one test file; it ends with the file. */
export const strict = async (version = "fauxqs"): Promise<Strict> => {
  const broker = await start("sqs", { version })
  const proxy = await strictSqs(broker)
  const [behind, client] = [connect(broker.url), connect(proxy.url)]
  afterAll(async () => {
    behind.destroy()
    client.destroy()
    await proxy.close()
    await broker.dispose()
  })
  return {
    name: broker.version,
    endpoint: `http://${new URL(broker.url).host}`,
    url: proxy.url,
    proxy,
    behind,
    client,
    another: (options) => strictSqs(broker, options)
  }
}

/** Those of these servers that can be had here. */
export const each = async (...versions: ReadonlyArray<string>): Promise<ReadonlyArray<Strict>> => {
  const found: Array<Strict> = []
  for (const version of versions) {
    const server = await strict(version).catch((cause: unknown) => {
      if (!(cause instanceof Unavailable)) throw cause
    })
    if (server !== undefined) found.push(server)
  }
  return found
}

/** The first of these servers that can be had here. */
export const firstOf = async (...versions: ReadonlyArray<string>): Promise<Strict> => {
  const [version, ...others] = versions
  return strict(version).catch((cause: unknown) => {
    if (!(cause instanceof Unavailable) || others.length === 0) throw cause
    return firstOf(...others)
  })
}
