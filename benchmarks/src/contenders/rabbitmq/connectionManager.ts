/** amqp-connection-manager: amqplib with connections and channels that are restored. */
import { connect } from "amqp-connection-manager"
import type { Workload } from "../../Contender.ts"
import { publishing } from "../publishing.ts"
import type * as Jobs from "./jobs.ts"

export const consume: Workload<Jobs.Consume> = async ({ body, prefetch, queue, url }, meter) => {
  const connection = connect([url])
  const channel = connection.createChannel()
  await channel.waitForConnect()
  const handler = async (_body: unknown): Promise<void> => {}
  meter.begin()
  const onMessage = (message: { readonly content: Buffer }): void => {
    handler(body === "json" ? JSON.parse(message.content.toString()) : message.content).then(
      () => {
        channel.ack(message as Parameters<typeof channel.ack>[0])
        meter.tick()
      },
      () => channel.nack(message as Parameters<typeof channel.nack>[0])
    )
  }
  await channel.consume(queue, onMessage, { prefetch })
  await meter.done
  await connection.close()
}

export const publish: Workload<Jobs.Publish> = async (job, meter) => {
  const connection = connect([job.url])
  const channel = connection.createChannel()
  await channel.waitForConnect()
  const body = Buffer.alloc(job.size, 120)
  const options = { persistent: true, mandatory: true, contentType: "application/octet-stream" }
  await publishing(job, meter, () =>
    channel.sendToQueue(job.queue, body, { ...options, messageId: crypto.randomUUID(), timestamp: Date.now() })
  )
  await connection.close()
}
