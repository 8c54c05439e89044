/**
 * A Redis server on the broker's core, with a fresh BullMQ queue for every round, next to a RabbitMQ server for the entries to
 * compare.
 */
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { redisServer } from "@requeue/brokers"
import { Queue } from "bullmq"
import { Redis } from "ioredis"
import { contents } from "./contents.ts"
import * as Pinning from "./pinning.ts"
import * as RabbitMqVenue from "./rabbitmqVenue.ts"
import type { Case, Venue } from "./Suite.ts"

/** Milliseconds that a server may take to start. */
const startTimeout = 10_000

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().on("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { readonly port: number }
      server.close(() => resolve(port))
    })
  })

/** With a log that is synced every second; without it a queue in Redis is lost with its server. */
const startRedis = async (say: (line: string) => void) => {
  const { command, environment } = await redisServer(say)
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), "requeue-bench-redis-"))
  const settings = ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, "--save", "", "--appendonly", "yes"]
  const child = spawn(command, settings, { stdio: "ignore", env: { ...process.env, ...environment } })
  const client = new Redis(port, "127.0.0.1", { maxRetriesPerRequest: null, retryStrategy: () => 50 })
  // Until it listens.
  client.on("error", () => {})
  const info = await Promise.race([client.info("server"), sleep(startTimeout)])
  if (info === undefined) throw new Error(`redis-server did not start within ${startTimeout / 1000} s`)
  return {
    pid: child.pid!,
    url: `redis://127.0.0.1:${port}`,
    version: /redis_version:(\S+)/.exec(info)![1]!,
    close: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve))
      client.disconnect()
      child.kill()
      await ended
      rmSync(folder, { recursive: true })
    }
  }
}

/** Jobs that are added together. */
const portion = 1000

export const open = async (pinning: Pinning.Pinning | undefined, say: (line: string) => void): Promise<Venue> => {
  const redis = await startRedis(say)
  Pinning.moveBroker(pinning, redis.pid)
  const rabbitmq = await RabbitMqVenue.open(pinning, say)
  const connection = { url: redis.url, maxRetriesPerRequest: null }

  const prepare = async ({ job, messages, warmUp }: Case) => {
    const name = `bench-${randomBytes(4).toString("hex")}`
    const queue = new Queue(name, { connection })
    const body = contents(256).toString()
    for (let left = job["filled"] === true ? messages + warmUp : 0; left > 0; left -= portion) {
      const count = Math.min(portion, left)
      await queue.addBulk(Array.from({ length: count }, () => ({ name: "work", data: body })))
    }
    return {
      job: { url: redis.url, queue: name },
      clear: async () => {
        await queue.obliterate({ force: true })
        await queue.close()
      }
    }
  }

  return {
    facts: { ...rabbitmq.facts, redis: `${redis.version}, append-only file` },
    servers: [...rabbitmq.servers, redis.pid],
    prepare: (one, entry) => (entry.contender.startsWith("redis/") ? prepare(one) : rabbitmq.prepare(one, entry)),
    close: async () => {
      await rabbitmq.close()
      await redis.close()
    }
  }
}
