/** The servers that tests run on, each with a proxy in front of it. */
import { start, wire, type RabbitMqBroker, type Wire } from "@requeue/brokers"
import * as Effect from "effect/Effect"
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

/** Which server: `newest`, `system`, or a release; `npm run test:deep` goes through the releases. */
const wanted = process.env["REQUEUE_RABBITMQ_VERSION"] ?? "newest"

const open = async (version: string = wanted): Promise<Server> => {
  const broker = await start("rabbitmq", { version })
  return { broker, version: broker.version, url: broker.url, ...(await link(broker.url)) }
}

/** A proxy in front of a server. */
const link = async (to: string): Promise<Pick<Server, "proxied" | "proxy">> => {
  const proxied = new URL(to)
  const proxy = await wire(Number(proxied.port || 5672), reader)
  proxied.hostname = "127.0.0.1"
  proxied.port = String(proxy.port)
  return { proxied: proxied.href, proxy }
}

/** The same server behind a proxy of its own: what breaks there disturbs nobody else. */
export const apart = (one: Server) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => link(one.url)),
      ({ proxy }) => Effect.promise(proxy.close)
    ),
    (own): Server => ({ ...one, ...own })
  )

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
