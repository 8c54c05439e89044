/**
 * message-queue-toolkit: schemas, handlers by message type. Always JSON; its AMQP consumer sets no prefetch, so the server sends
 * it everything.
 */
import { AbstractAmqpQueueConsumer, AmqpConnectionManager } from "@message-queue-toolkit/amqp"
import type { Workload } from "../../Contender.ts"
import { logger, type Message, options, services } from "../messageQueueToolkit.ts"
import type * as Jobs from "./jobs.ts"

export const consume: Workload<Jobs.Consume> = async ({ queue, url }, meter) => {
  const { hostname, password, port, username } = new URL(url)
  const config = {
    hostname,
    port: Number(port),
    username,
    password: decodeURIComponent(password),
    vhost: "",
    useTls: false
  }
  const amqpConnectionManager = new AmqpConnectionManager(config, logger)
  await amqpConnectionManager.init()
  const consumer = new AbstractAmqpQueueConsumer<Message, undefined>(
    { ...services, logger, amqpConnectionManager },
    { ...options(meter), locatorConfig: { queueName: queue } },
    undefined
  )
  await consumer.start()
  // Closing would fail on its remaining messages; the process ends.
  await meter.done
}
