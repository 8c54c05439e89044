/** A RabbitMQ server on its own core, with a fresh quorum queue for every round. */
import { randomBytes } from "node:crypto"
import amqp from "amqplib"
import { start } from "@requeue/brokers"
import { contents } from "./contents.ts"
import * as Pinning from "./pinning.ts"
import type { Case, Venue } from "./Suite.ts"

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
    }
    await channel.waitForConfirms()
  }

  return {
    facts: { rabbitmq: broker.version },
    prepare: async ({ job, messages, warmUp }: Case, entry) => {
      const queue = `bench.${randomBytes(4).toString("hex")}`
      const rehearsal = `${queue}.rehearsal`
      const wanted = { ...job, ...entry.job }
      const { filled = 0, size = 256, body = "bytes", messages: own = messages, rehearsed = 0 } = wanted
      const all = [queue, rehearsal].flatMap((each) => [each, `${each}.dlq`])
      for (const each of all) {
        await channel.assertQueue(each, { durable: true, arguments: { "x-queue-type": "quorum" } })
      }
      const backlog = filled === true ? Number(own) + warmUp : Number(filled)
      const contentType = body === "json" ? "application/json" : "application/octet-stream"
      await fill(queue, backlog, { size: Number(size), contentType })
      await fill(rehearsal, Number(rehearsed), { size: Number(size), contentType })
      return {
        job: { url: broker.url, queue, rehearsal },
        clear: async () => {
          for (const each of all) await channel.deleteQueue(each)
        }
      }
    },
    close: async () => {
      await connection.close()
      await broker.dispose()
    }
  }
}
