/** A PostgreSQL server on its own core, with a fresh schema for every round. It syncs each commit, as by default. */
import { randomBytes } from "node:crypto"
import { start } from "@requeue/brokers"
import { Client } from "pg"
import * as Pinning from "./pinning.ts"
import * as ProcessorTime from "./processorTime.ts"
import type { Venue } from "./Suite.ts"

export const open = async (pinning: Pinning.Pinning | undefined, say: (line: string) => void): Promise<Venue> => {
  const broker = await start("postgres", { say })
  const servers = Pinning.pidsOf(broker.nodes)
  // Those that it starts later inherit it.
  for (const pid of servers.flatMap(ProcessorTime.family)) Pinning.moveBroker(pinning, pid)
  const client = new Client(broker.url)
  await client.connect()
  return {
    facts: { postgres: broker.version },
    servers,
    prepare: async () => {
      const schema = `bench_${randomBytes(4).toString("hex")}`
      return {
        job: { url: broker.url, schema },
        clear: async () => {
          await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
          // Else the next contender writes these pages.
          await client.query("CHECKPOINT")
        }
      }
    },
    close: async () => {
      await client.end()
      await broker.dispose()
    }
  }
}
