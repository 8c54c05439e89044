/** The servers of a setup, with proxies before them, and what disturbs them. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type BrokerName, proxy, start, type TcpProxy } from "@requeue/brokers"
import type { Address } from "./orders.ts"

export interface Setup {
  readonly database: "sqlite" | "postgres"
  /** `undefined`: the queues are in the database. */
  readonly broker?: Exclude<BrokerName, "postgres">
}

export interface Rig {
  /** The addresses of workers, behind proxies. */
  readonly workers: Addresses
  readonly direct: Addresses
  /** Kills and restarts servers, and cuts connections. */
  readonly disturbances: ReadonlyArray<() => Promise<void>>
  /** The number of commits whose answer was lost. */
  readonly lostCommits: () => number
  readonly close: () => Promise<void>
}

interface Addresses {
  readonly broker: Address
  readonly store: Address | undefined
  readonly database: string
}

/** Of how many answers to COMMIT one is lost with its connection. */
const losses = 15

/** Leases are short because a killed worker's messages wait for their end. */
const options = {
  sqlite: { lease: 2000 },
  postgres: { lease: 5000 },
  rabbitmq: {},
  nsq: { messageTimeout: 2000 },
  sqs: { visibilityTimeout: 4000, waitTime: 1000 }
} as const

const withPort = (url: string, port: number): string => {
  const changed = new URL(url)
  changed.port = String(port)
  return changed.href
}

/** The answer to COMMIT, and that no transaction is open. */
const answer = Buffer.from("COMMIT\0Z\0\0\0\x05I", "latin1")

const openSqlite = () => {
  const folder = mkdtempSync(join(tmpdir(), "requeue-effects-"))
  const url = `sqlite:${join(folder, "queue.db")}`
  return {
    url: { direct: url, workers: url },
    disturbances: [],
    lostCommits: () => 0,
    close: async () => rmSync(folder, { recursive: true })
  }
}

const openPostgres = async () => {
  const server = await start("postgres")
  let [commits, lost] = [0, 0]
  const between = await proxy(server.nodes[0]!.port, undefined, undefined, () => (bytes) => {
    if (!bytes.includes(answer) || ++commits % losses !== 0) return bytes
    lost++
    return undefined
  })
  return {
    url: { direct: server.url, workers: withPort(server.url, between.port) },
    disturbances: [
      async () => {
        await server.kill()
        await server.start()
      }
    ],
    lostCommits: () => lost,
    close: async () => {
      await between.close()
      await server.dispose()
    }
  }
}

const openBroker = async (name: Exclude<BrokerName, "postgres">) => {
  const server = await start(name)
  const between: TcpProxy = await proxy(server.nodes[0]!.port)
  const restart = {
    rabbitmq: async () => {
      await server.kill()
      await server.start()
    },
    // A killed nsqd loses what it has in memory, and the server of SQS has all there.
    nsq: server.restart,
    sqs: async () => between.cut()
  }
  return {
    url: { direct: server.url, workers: withPort(server.url, between.port) },
    options: name === "nsq" ? { nsqdHttp: [server.nodes[0]!.managementUrl!] } : {},
    disturbances: [restart[name], async () => between.cut()],
    close: async () => {
      await between.close()
      await server.dispose()
    }
  }
}

export const open = async ({ broker: name, database: kind }: Setup): Promise<Rig> => {
  const database = kind === "sqlite" ? openSqlite() : await openPostgres()
  const broker = name && (await openBroker(name))
  const addresses = (side: "direct" | "workers"): Addresses => {
    const store = { url: database.url[side], ...options[kind] }
    return name === undefined || broker === undefined
      ? { broker: store, store: undefined, database: database.url[side] }
      : { broker: { url: broker.url[side], ...options[name], ...broker.options }, store, database: database.url[side] }
  }
  return {
    workers: addresses("workers"),
    direct: addresses("direct"),
    disturbances: [...database.disturbances, ...(broker?.disturbances ?? [])],
    lostCommits: database.lostCommits,
    close: async () => {
      await broker?.close()
      await database.close()
    }
  }
}
