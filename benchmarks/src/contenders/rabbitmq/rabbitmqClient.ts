/** rabbitmq-client: a separate AMQP implementation, with consumers that reconnect. It parses JSON by the content type. */
import { Connection } from "rabbitmq-client"
import type { Workload } from "../../Contender.ts"
import { publishing } from "../publishing.ts"
import * as Transit from "../transit.ts"
import type * as Jobs from "./jobs.ts"

const open = async (url: string): Promise<Connection> => {
  const connection = new Connection({ url, noDelay: false })
  await connection.onConnect()
  return connection
}

export const consume: Workload<Jobs.Consume> = async ({ prefetch, queue, url }, meter) => {
  const connection = await open(url)
  const options = { queue, queueOptions: { passive: true }, qos: { prefetchCount: prefetch } }
  meter.begin()
  const consumer = connection.createConsumer(options, async () => meter.tick())
  consumer.on("error", () => {})
  await meter.done
  await consumer.close()
  await connection.close()
}

export const publish: Workload<Jobs.Publish> = async (job, meter) => {
  const { queue, size, url } = job
  const connection = await open(url)
  const publisher = connection.createPublisher({ confirm: true })
  const body = Buffer.alloc(size, 120)
  await publishing(job, meter, () => {
    const messageId = crypto.randomUUID()
    return publisher.send({ routingKey: queue, durable: true, mandatory: true, messageId }, body)
  })
  await publisher.close()
  await connection.close()
}

export const transit: Workload<Transit.Transit> = async (job, meter) => {
  const { queue, url } = job
  const transit = Transit.make(job, meter)
  const connection = await open(url)
  const options = { queue, queueOptions: { passive: true }, qos: { prefetchCount: 100 } }
  const consumer = connection.createConsumer(options, async ({ body }) => transit.came(String(body)))
  consumer.on("error", () => {})
  const publisher = connection.createPublisher({ confirm: true })
  await transit.send((body) => publisher.send({ routingKey: queue, durable: true }, Buffer.from(body)))
  await meter.done
  transit.report()
  await consumer.close()
  await publisher.close()
  await connection.close()
}
