/** The brokers that tests run on. */
import { type Broker, start } from "@requeue/brokers"
import type { Requeue } from "@requeue/core/promise"
import { deadLetters } from "@requeue/operations/promise"
import { randomUUID } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, vi } from "vitest"

type Name = Parameters<typeof start>[0]

/** A new file of SQLite, which needs no server. */
const file = (): Address => {
  const folder = mkdtempSync(join(tmpdir(), "requeue-cli-"))
  return {
    url: `sqlite:${join(folder, "queue.db")}`,
    managementUrl: undefined,
    dispose: async () => rmSync(folder, { recursive: true })
  }
}

export type Address = Pick<Broker, "url" | "managementUrl" | "dispose">

/** Milliseconds that a broker may take to start, however busy the machine is. */
const deadline = 240_000

/** A server on a busy machine may answer later than users should have to wait for it. */
const patiently = (name: Name, { dispose, managementUrl, url }: Address): Address => {
  const patient = new URL(url)
  const options = ["connectTimeout", "requestTimeout", ...(name === "sqs" ? [] : ["publishTimeout"])]
  for (const option of options) patient.searchParams.set(option, "120000")
  return { url: patient.href, managementUrl, dispose }
}

const everywhere = globalThis as { requeueRabbitMq?: Promise<Broker> }

/** One for all files, because its start takes most of their time. It ends with the worker's process. */
export const rabbitmq = async (): Promise<Address> =>
  patiently("rabbitmq", await (everywhere.requeueRabbitMq ??= start("rabbitmq", { deadline })))

/** A virtual host of it, in which nothing is yet. */
const virtualHost = async (): Promise<Address> => {
  const { managementUrl = "", url } = await rabbitmq()
  const { host, password, username } = new URL(managementUrl)
  const vhost = randomUUID()
  const authorization = `Basic ${btoa(`${username}:${password}`)}`
  const ask = async (method: string) => {
    const { status } = await fetch(`http://${host}/api/vhosts/${vhost}`, { method, headers: { authorization } })
    assert.isBelow(status, 300, `${method} of a virtual host`)
  }
  // The server accepts AMQP connections, its management interface maybe not yet.
  await vi.waitFor(() => ask("PUT"), { timeout: deadline })
  const inside = new URL(url)
  inside.pathname = vhost
  return { url: inside.href, managementUrl, dispose: () => ask("DELETE") }
}

/** A broker in which nothing is yet. */
export const open = async (name: Name | "sqlite"): Promise<Address> =>
  name === "sqlite" ? file() : name === "rabbitmq" ? virtualHost() : patiently(name, await start(name, { deadline }))

/** Removes what an earlier run may have left in a queue, on a server that others use as well. */
export const clear = async (connection: Requeue, queue: string): Promise<void> => {
  const { isMissing } = await connection.counts(queue)
  if (isMissing !== true) await deadLetters(connection, queue).purge({ all: true, force: queue })
}
