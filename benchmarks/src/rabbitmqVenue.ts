/** A RabbitMQ server on its own core, with a fresh quorum queue for every round, or one for all rounds of a case. */
import { randomBytes } from "node:crypto"
import amqp from "amqplib"
import { start } from "@requeue/brokers"
import { contents } from "./contents.ts"
import * as Pinning from "./pinning.ts"
import type { Case, Place, Venue } from "./Suite.ts"

const quorum = { durable: true, arguments: { "x-queue-type": "quorum" } }

export const open = async (pinning: Pinning.Pinning | undefined, say: (line: string) => void): Promise<Venue> => {
  const broker = await start("rabbitmq", { say })
  for (const node of broker.nodes) Pinning.moveBroker(pinning, node.pid())
  const connection = await amqp.connect(broker.url)
  const channel = await connection.createConfirmChannel()

  const fill = async (
    queue: string,
    messages: number,
    { size, contentType }: { size: number; contentType: string }
  ) => {
    const body = contents(size)
    const timestamp = Math.floor(Date.now() / 1000)
    for (let n = 0; n < messages; n++) {
      const options = { persistent: true, messageId: `${queue}-${n}`, timestamp, contentType }
      channel.publish("", queue, body, options)
      if (n % 2000 === 1999) await channel.waitForConfirms()
      if (n % 200_000 === 199_999) say(`filled ${(n + 1).toLocaleString("en")} of ${messages.toLocaleString("en")}`)
    }
    await channel.waitForConfirms()
  }

  /** In memory, on this connection, and open to every publisher, not to consumers: the server must not limit the result. */
  const assert = (queues: ReadonlyArray<string>, isConsumed: boolean) =>
    Promise.all(
      queues.map((queue) =>
        channel.assertQueue(queue, {
          durable: isConsumed,
          exclusive: !isConsumed,
          arguments: { "x-queue-type": "classic" }
        })
      )
    )

  const make = async ({ job, messages, warmUp }: Case): Promise<Place> => {
    const queue = `bench.${randomBytes(4).toString("hex")}`
    const rehearsal = `${queue}.rehearsal`
    const {
      filled = 0,
      size = 256,
      body = "bytes",
      messages: own = messages,
      queues = 0,
      isConsumed,
      rehearsed = 0
    } = job
    const all = [queue, rehearsal].flatMap((each) => [each, `${each}.dlq`])
    for (const each of all) await channel.assertQueue(each, quorum)
    const many = Array.from({ length: Number(queues) }, (_, n) => `${queue}.${n}`).flatMap((each) =>
      isConsumed === true ? [each, `${each}.dlq`] : [each]
    )
    await assert(many, isConsumed === true)
    const backlog = filled === true ? Number(own) + warmUp : Number(filled)
    const contentType = body === "json" ? "application/json" : "application/octet-stream"
    await fill(queue, backlog, { size: Number(size), contentType })
    await fill(rehearsal, Number(rehearsed), { size: Number(size), contentType })
    return {
      job: { url: broker.url, queue, rehearsal },
      clear: async () => {
        await Promise.all([...all, ...many].map((each) => channel.deleteQueue(each)))
      }
    }
  }

  /** The shared place of a case whose rounds use one. */
  let shared: { readonly name: string; readonly place: Place } | undefined
  const unshare = async (): Promise<void> => {
    await shared?.place.clear()
    shared = undefined
  }

  /** Every round starts with the same backlog: it is refilled. */
  const share = async (one: Case): Promise<Place> => {
    if (shared?.name !== one.name) {
      await unshare()
      shared = { name: one.name, place: await make(one) }
    }
    const { place } = shared
    const { filled = 0, size = 256 } = one.job
    if (filled !== 0) {
      const contentType = "application/octet-stream"
      await fill(String(place.job["queue"]), one.messages + one.warmUp, { size: Number(size), contentType })
    }
    return { job: place.job, clear: async () => {} }
  }

  return {
    facts: { rabbitmq: broker.version },
    servers: Pinning.pidsOf(broker.nodes),
    prepare: async (one, entry) => {
      const wanted = { ...one, job: { ...one.job, ...entry.job } }
      if (wanted.job["isShared"] === true) return share(wanted)
      await unshare()
      return make(wanted)
    },
    close: async () => {
      await connection.close()
      await broker.dispose()
    }
  }
}
