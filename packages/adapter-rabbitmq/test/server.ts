/** The servers that tests run on, each with a proxy in front of it. */
import { start, wire, type RabbitMqBroker, type Wire } from "@requeue/brokers"
import { afterAll } from "vitest"
import { reader } from "./commands.ts"

export interface Server {
  readonly broker: RabbitMqBroker
  readonly version: string
  /** Straight to the server. */
  readonly url: string
  /** Through the proxy. */
  readonly proxied: string
  readonly proxy: Wire
}

/** Which server: `newest`, `system`, or a release; `npm run test:matrix` goes through the releases. */
const wanted = process.env["REQUEUE_RABBITMQ_VERSION"] ?? "newest"

const open = async (version: string = wanted): Promise<Server> => {
  const broker = await start("rabbitmq", { version })
  const url = new URL(broker.url)
  const link = await wire(Number(url.port || 5672), reader)
  const proxied = new URL(url)
  proxied.hostname = "127.0.0.1"
  proxied.port = String(link.port)
  return { broker, version: broker.version, url: broker.url, proxied: proxied.href, proxy: link }
}

/** A server for one test file; it ends with the file. */
export const server = async (version?: string): Promise<Server> => {
  const one = await open(version)
  afterAll(async () => {
    await one.proxy.close()
    await one.broker.dispose()
  })
  return one
}

const everywhere = globalThis as { requeueServer?: Promise<Server> }

/**
 * A server for all files of a worker that neither kill nor restart it, which saves most of their time. It ends with the
 * worker's process.
 */
export const shared = (): Promise<Server> => (everywhere.requeueServer ??= open())
