/** What AWS does between a queue and a function: receives, invokes, and deletes what the answer does not name. */
import type { Message, SQS } from "@aws-sdk/client-sqs"
import type { SqsLambda } from "../../src/lambda.ts"

export interface Mapping {
  /** The event of what is received now. */
  readonly event: (count?: number) => Promise<SqsLambda.SqsEvent>
  /** Acts on the answer as with `ReportBatchItemFailures`: an answer that names nobody it knows fails as a whole. */
  readonly apply: (event: SqsLambda.SqsEvent, answer: SqsLambda.SqsBatchResponse) => Promise<void>
  /** One round: receive, invoke, apply. Answers how many messages there were. */
  readonly round: (handler: SqsLambda.Handler, remaining?: number) => Promise<number>
}

/** How much time a function has unless a test says otherwise, in milliseconds. */
const functionTimeout = 20_000

export const context = (remaining: number = functionTimeout): SqsLambda.LambdaContext => {
  const end = performance.now() + remaining
  return { getRemainingTimeInMillis: () => end - performance.now() }
}

const arnOf = async (sqs: SQS, url: string): Promise<string> => {
  const { Attributes } = await sqs.getQueueAttributes({ QueueUrl: url, AttributeNames: ["QueueArn"] })
  return Attributes!.QueueArn!
}

const toRecord = (
  { Attributes = {}, Body = "", MessageAttributes = {}, MessageId = "", ReceiptHandle = "" }: Message,
  arn: string
): SqsLambda.SqsRecord => ({
  messageId: MessageId,
  receiptHandle: ReceiptHandle,
  body: Body,
  attributes: Attributes as SqsLambda.SqsRecord["attributes"],
  messageAttributes: Object.fromEntries(
    Object.entries(MessageAttributes).map(([name, { BinaryValue, DataType = "", StringValue }]) => [
      name,
      {
        dataType: DataType,
        stringValue: StringValue,
        binaryValue: BinaryValue && Buffer.from(BinaryValue).toString("base64")
      }
    ])
  ),
  eventSourceARN: arn
})

export const mapping = (sqs: SQS, url: string): Mapping => {
  const event: Mapping["event"] = async (count = 10) => {
    const [arn, { Messages = [] }] = await Promise.all([
      arnOf(sqs, url),
      sqs.receiveMessage({
        QueueUrl: url,
        MaxNumberOfMessages: count,
        WaitTimeSeconds: 0,
        MessageSystemAttributeNames: ["All"],
        MessageAttributeNames: ["All"]
      })
    ])
    // As through the wire: what is undefined is not there.
    return JSON.parse(
      JSON.stringify({ Records: Messages.map((message) => toRecord(message, arn)) })
    ) as SqsLambda.SqsEvent
  }

  const apply: Mapping["apply"] = async ({ Records }, { batchItemFailures }) => {
    const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier))
    const known = new Set(Records.map(({ messageId }) => messageId))
    if ([...failed].some((id) => !known.has(id))) throw new Error(`the answer names ${[...failed].join()}`)
    const done = Records.filter(({ messageId }) => !failed.has(messageId))
    if (done.length === 0) return
    await sqs.deleteMessageBatch({
      QueueUrl: url,
      Entries: done.map(({ receiptHandle }, index) => ({ Id: String(index), ReceiptHandle: receiptHandle }))
    })
  }

  return {
    event,
    apply,
    round: async (handler, remaining) => {
      const received = await event()
      if (received.Records.length > 0) await apply(received, await handler(received, context(remaining)))
      return received.Records.length
    }
  }
}
