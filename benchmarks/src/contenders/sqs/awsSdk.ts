/** The raw client: receive ten, handle them, delete them in one call. */
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand
} from "@aws-sdk/client-sqs"
import type { Workload } from "../../Contender.ts"
import type { Meter } from "../../Meter.ts"
import * as Transit from "../transit.ts"
import * as Calls from "./calls.ts"
import { connect } from "./client.ts"
import * as Failing from "./failing.ts"
import type * as Jobs from "./jobs.ts"

const toEntry = ({ ReceiptHandle }: Message, index: number) => ({ Id: String(index), ReceiptHandle: ReceiptHandle! })

/** Receives until all is done, with this many concurrent polls. */
const receiving = async (
  {
    polls,
    queueUrl,
    url,
    visibilityTimeout
  }: Pick<Jobs.Consume, "polls" | "queueUrl" | "url"> & Partial<Pick<Jobs.Retry, "visibilityTimeout">>,
  meter: Meter,
  settle: (messages: ReadonlyArray<Message>, client: ReturnType<typeof connect>) => Promise<void>
): Promise<void> => {
  const client = connect(url)
  let isDone = false
  const poll = async (): Promise<void> => {
    while (!isDone) {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({
          QueueUrl: queueUrl,
          MaxNumberOfMessages: 10,
          WaitTimeSeconds: 1,
          MessageSystemAttributeNames: ["ApproximateReceiveCount"],
          ...(visibilityTimeout === undefined ? {} : { VisibilityTimeout: visibilityTimeout / 1000 })
        })
      )
      if (Messages.length > 0) await settle(Messages, client)
    }
  }
  const polling = Promise.all(Array.from({ length: polls }, poll))
  await meter.done
  isDone = true
  await polling
  client.destroy()
}

export const consume: Workload<Jobs.Consume> = async (job, meter) => {
  const calls = Calls.count()
  const handler = async (_message: Message): Promise<void> => meter.tick()
  await receiving(job, meter, async (messages, client) => {
    await Promise.all(messages.map(handler))
    const Entries = messages.map(toEntry)
    await client.send(new DeleteMessageBatchCommand({ QueueUrl: job.queueUrl, Entries }))
  })
  calls.report(meter, job.messages + job.warmUp)
}

/** Each message of a batch has its own outcome: successes are deleted, failures are hidden for the delay. */
export const retry: Workload<Jobs.Retry> = async (job, meter) => {
  const failing = Failing.make(job, meter)
  const QueueUrl = job.queueUrl
  await receiving(job, meter, async (messages, client) => {
    const { false: failed = [], true: done = [] } = Object.groupBy(messages, ({ Attributes, MessageId }) =>
      failing.handle(MessageId!, Number(Attributes!.ApproximateReceiveCount)) ? "true" : "false"
    )
    if (done.length > 0) await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: done.map(toEntry) }))
    if (failed.length === 0) return
    const VisibilityTimeout = job.delay / 1000
    const Entries = failed.map((message, index) => ({ ...toEntry(message, index), VisibilityTimeout }))
    await client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries }))
  })
  failing.report()
}

export const transit: Workload<Transit.Transit & Jobs.Consume> = async (job, meter) => {
  const transit = Transit.make(job, meter)
  const QueueUrl = job.queueUrl
  const sender = connect(job.url)
  const received = receiving(job, meter, async (messages, client) => {
    for (const { Body } of messages) transit.came(Body!)
    await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: messages.map(toEntry) }))
  })
  await transit.send((MessageBody) => sender.send(new SendMessageCommand({ QueueUrl, MessageBody })))
  await received
  transit.report()
  sender.destroy()
}
