/** sqs-consumer, as its README shows it: one consumer is one poll at a time. */
import { type Message, SendMessageCommand } from "@aws-sdk/client-sqs"
import { Consumer, type ConsumerOptions } from "sqs-consumer"
import type { Workload } from "../../Contender.ts"
import type { Meter } from "../../Meter.ts"
import * as Transit from "../transit.ts"
import * as Calls from "./calls.ts"
import { connect } from "./client.ts"
import * as Failing from "./failing.ts"
import type * as Jobs from "./jobs.ts"

const consuming = async (
  { polls, queueUrl, url }: Pick<Jobs.Consume, "polls" | "queueUrl" | "url">,
  meter: Meter,
  options: Omit<ConsumerOptions, "queueUrl">
): Promise<void> => {
  const sqs = connect(url)
  const consumers = Array.from({ length: polls }, () =>
    Consumer.create({ queueUrl, sqs, batchSize: 10, waitTimeSeconds: 1, ...options })
  )
  for (const consumer of consumers) {
    consumer.on("error", (error) => {
      throw error
    })
    consumer.start()
  }
  await meter.done
  for (const consumer of consumers) consumer.stop()
}

export const consume: Workload<Jobs.Consume> = async (job, meter) => {
  const calls = Calls.count()
  const handleMessage = async (message: Message) => {
    meter.tick()
    return message
  }
  const handleMessageBatch = async (messages: Array<Message>) => {
    meter.tick(messages.length)
    return messages
  }
  await consuming(job, meter, job.batch ? { handleMessageBatch } : { handleMessage })
  calls.report(meter, job.messages + job.warmUp)
}

/**
 * If a single handler throws, its message is hidden for the delay; messages that a batch handler does not return keep their
 * visibility timeout.
 */
export const retry: Workload<Jobs.Retry> = async (job, meter) => {
  const failing = Failing.make(job, meter)
  const isDone = ({ Attributes, MessageId }: Message) =>
    failing.handle(MessageId!, Number(Attributes!.ApproximateReceiveCount))
  const handleMessage = async (message: Message) => {
    if (isDone(message)) return message
    throw new Error("failed")
  }
  const handleMessageBatch = async (messages: Array<Message>) => messages.filter(isDone)
  await consuming(job, meter, {
    visibilityTimeout: job.visibilityTimeout / 1000,
    terminateVisibilityTimeout: job.delay / 1000,
    messageSystemAttributeNames: ["ApproximateReceiveCount"],
    ...(job.batch ? { handleMessageBatch } : { handleMessage })
  })
  failing.report()
}

/** It has no sender: the SDK sends. */
export const transit: Workload<Transit.Transit & Jobs.Consume> = async (job, meter) => {
  const transit = Transit.make(job, meter)
  const QueueUrl = job.queueUrl
  const sender = connect(job.url)
  const received = consuming(job, meter, {
    handleMessage: async (message) => {
      transit.came(message.Body!)
      return message
    }
  })
  await transit.send((MessageBody) => sender.send(new SendMessageCommand({ QueueUrl, MessageBody })))
  await received
  transit.report()
  sender.destroy()
}
