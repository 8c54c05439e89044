/** A call of the SQS API, as the JSON protocol has it. */

export interface Attribute {
  readonly DataType?: string
  readonly StringValue?: string
  readonly BinaryValue?: string
}

/** What one message is about: an entry of a batch, or a call that is not one. */
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
  readonly Attributes?: Readonly<Record<string, string>>
  readonly Entries?: ReadonlyArray<Entry>
  readonly MaxNumberOfMessages?: number
  readonly WaitTimeSeconds?: number
}

export interface Call {
  readonly action: string
  readonly body: Body
  /** The name of the queue; empty where none is named. */
  readonly queue: string
}

export const make = (action: string, body: Body): Call => ({
  action,
  body,
  queue: body.QueueName ?? body.QueueUrl?.split("/").at(-1) ?? ""
})

export const isBatch = ({ action }: Call): boolean => action.endsWith("Batch")

/** `DeleteMessage` of `DeleteMessageBatch`: rules and permissions are the same. */
export const single = ({ action }: Call): string => action.replace(/Batch$/, "")

export const isFifo = ({ queue }: Call): boolean => queue.endsWith(".fifo")

export const entriesOf = (call: Call): ReadonlyArray<Entry> => (isBatch(call) ? (call.body.Entries ?? []) : [call.body])
