/** A call of the SQS API in the JSON protocol. */

export interface Attribute {
  readonly DataType?: string
  readonly StringValue?: string
  readonly BinaryValue?: string
}

/** The part of a call that concerns one message: an entry of a batch, or the body of a call without entries. */
export interface Entry {
  readonly Id?: string
  readonly MessageBody?: string
  readonly DelaySeconds?: number
  readonly MessageAttributes?: Readonly<Record<string, Attribute>>
  readonly MessageGroupId?: string
  readonly MessageDeduplicationId?: string
  readonly ReceiptHandle?: string
  readonly VisibilityTimeout?: number
}

export interface Body extends Entry {
  readonly QueueUrl?: string
  readonly QueueName?: string
  readonly QueueOwnerAWSAccountId?: string
  readonly AttributeNames?: ReadonlyArray<string>
  readonly MessageSystemAttributeNames?: ReadonlyArray<string>
  readonly SourceArn?: string
  readonly DestinationArn?: string
  readonly MaxNumberOfMessagesPerSecond?: number
  readonly MaxResults?: number
  readonly TaskHandle?: string
  readonly Attributes?: Readonly<Record<string, string>>
  readonly Entries?: ReadonlyArray<Entry>
  readonly MaxNumberOfMessages?: number
  readonly WaitTimeSeconds?: number
  readonly ReceiveRequestAttemptId?: string
}

export interface Call {
  readonly action: string
  readonly body: Body
  /** The name of the queue; empty if the call names none. */
  readonly queue: string
}

export const make = (action: string, body: Body): Call => ({
  action,
  body,
  queue: body.QueueName ?? body.QueueUrl?.split("/").at(-1) ?? ""
})

export const isBatch = ({ action }: Call): boolean => action.endsWith("Batch")

/** The action of a single message, such as `DeleteMessage` of `DeleteMessageBatch`: it has the same rules and permissions. */
export const single = ({ action }: Call): string => action.replace(/Batch$/, "")

export const isFifo = ({ queue }: Call): boolean => queue.endsWith(".fifo")

export const entriesOf = (call: Call): ReadonlyArray<Entry> => (isBatch(call) ? (call.body.Entries ?? []) : [call.body])
