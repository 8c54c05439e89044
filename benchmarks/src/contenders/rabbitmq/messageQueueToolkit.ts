/**
 * message-queue-toolkit: schemas, handlers by message type. Always JSON; its AMQP consumer sets no prefetch, so that
 * the server sends it everything.
 */
import { AbstractAmqpQueueConsumer, AmqpConnectionManager } from "@message-queue-toolkit/amqp"
import { MessageHandlerConfigBuilder } from "@message-queue-toolkit/core"
import { z } from "zod"
import type { Workload } from "../../Contender.ts"
import type * as Jobs from "./jobs.ts"

const Message = z.object({ id: z.string(), type: z.literal("thing.done"), timestamp: z.string(), text: z.string() })
type Message = z.infer<typeof Message>

const silence = () => {}
type Logger = ConstructorParameters<typeof AmqpConnectionManager>[1]

const logger: Logger = {
  level: "silent",
  msgPrefix: undefined,
  fatal: silence,
  error: silence,
  warn: silence,
  info: silence,
  debug: silence,
  trace: silence,
  silent: silence,
  child: () => logger,
  isLevelEnabled: () => false
}

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
  const handlers = new MessageHandlerConfigBuilder<Message, undefined>()
    .addConfig(Message, async () => {
      meter.tick()
      return { result: "success" }
    })
    .build()
  const consumer = new AbstractAmqpQueueConsumer<Message, undefined>(
    {
      amqpConnectionManager,
      logger,
      errorReporter: { report: silence },
      consumerErrorResolver: {
        processError: (error: unknown) => {
          throw error
        }
      },
      transactionObservabilityManager: {
        start: silence,
        startWithGroup: silence,
        stop: silence,
        addCustomAttributes: silence
      }
    },
    { locatorConfig: { queueName: queue }, handlers, messageTypeResolver: { messageTypePath: "type" } },
    undefined
  )
  await consumer.start()
  // Closing would fail on what it still has; the process ends.
  await meter.done
}
