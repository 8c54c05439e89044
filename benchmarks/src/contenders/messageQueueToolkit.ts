/** What message-queue-toolkit's consumers need on every broker: the schema of the message, and silent services. */
import { MessageHandlerConfigBuilder, type QueueDependencies } from "@message-queue-toolkit/core"
import { z } from "zod"
import type { Meter } from "../Meter.ts"

const Message = z.object({ id: z.string(), type: z.literal("thing.done"), timestamp: z.string(), text: z.string() })
export type Message = z.infer<typeof Message>

const silence = () => {}

export const logger: QueueDependencies["logger"] = {
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

export const services = {
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
}

export const options = (meter: Meter) => ({
  handlers: new MessageHandlerConfigBuilder<Message, undefined>()
    .addConfig(Message, async () => {
      meter.tick()
      return { result: "success" }
    })
    .build(),
  messageTypeResolver: { messageTypePath: "type" }
})
