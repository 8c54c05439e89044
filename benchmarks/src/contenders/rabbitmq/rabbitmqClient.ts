/** rabbitmq-client: an AMQP client of its own, with consumers that reconnect. It parses JSON by the content type. */
import { Connection } from "rabbitmq-client"
import type { Workload } from "../../Contender.ts"
import type * as Jobs from "./jobs.ts"

const open = async (url: string): Promise<Connection> => {
  const connection = new Connection({ url, noDelay: false })
  await connection.onConnect()
  return connection
}

export const consume: Workload<Jobs.Consume> = async ({ prefetch, queue, url }, meter) => {
  const connection = await open(url)
  const options = { queue, queueOptions: { passive: true }, qos: { prefetchCount: prefetch } }
  const consumer = connection.createConsumer(options, async () => meter.tick())
  consumer.on("error", () => {})
  await meter.done
  await consumer.close()
  await connection.close()
}

export const publish: Workload<Jobs.Publish> = async ({ inFlight, messages, queue, size, url, warmUp }, meter) => {
  const connection = await open(url)
  const publisher = connection.createPublisher({ confirm: true })
  const body = Buffer.alloc(size, 120)
  let left = messages + warmUp
  const line = async (): Promise<void> => {
    while (left-- > 0) {
      const messageId = crypto.randomUUID()
      await publisher.send({ routingKey: queue, durable: true, mandatory: true, messageId }, body)
      meter.tick()
    }
  }
  await Promise.all(Array.from({ length: inFlight }, line))
  await publisher.close()
  await connection.close()
}
