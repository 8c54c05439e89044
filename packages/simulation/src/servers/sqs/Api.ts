/** SQS's API as a simulated server sees it: calls, and their answers. */
import type * as Result from "effect/Result"
import type { AwsError } from "./AwsError.ts"

/** An attribute of a message. */
export interface Attribute {
  readonly DataType?: string | undefined
  readonly StringValue?: string | undefined
  readonly BinaryValue?: Uint8Array | undefined
}

/** The part of a call that concerns one message: an entry of a batch. */
export interface Entry {
  readonly Id?: string | undefined
  readonly MessageBody?: string | undefined
  readonly DelaySeconds?: number | undefined
  readonly MessageAttributes?: Readonly<Record<string, Attribute>> | undefined
  readonly MessageSystemAttributes?: Readonly<Record<string, Attribute>> | undefined
  readonly MessageGroupId?: string | undefined
  readonly MessageDeduplicationId?: string | undefined
  readonly ReceiptHandle?: string | undefined
  readonly VisibilityTimeout?: number | undefined
}

/** The input of a call. */
export interface Body {
  readonly QueueUrl?: string | undefined
  readonly QueueName?: string | undefined
  readonly QueueOwnerAWSAccountId?: string | undefined
  readonly Attributes?: Readonly<Record<string, string>> | undefined
  readonly AttributeNames?: ReadonlyArray<string> | undefined
  readonly MessageSystemAttributeNames?: ReadonlyArray<string> | undefined
  readonly MessageAttributeNames?: ReadonlyArray<string> | undefined
  readonly Entries?: ReadonlyArray<Entry> | undefined
  readonly MaxNumberOfMessages?: number | undefined
  readonly WaitTimeSeconds?: number | undefined
  readonly VisibilityTimeout?: number | undefined
  readonly ReceiveRequestAttemptId?: string | undefined
  readonly SourceArn?: string | undefined
  readonly DestinationArn?: string | undefined
  readonly MaxNumberOfMessagesPerSecond?: number | undefined
  readonly MaxResults?: number | undefined
  readonly TaskHandle?: string | undefined
}

/** A call. */
export interface Call {
  /** Such as `SendMessageBatch`. */
  readonly action: string
  readonly body: Body
  /** The name of the queue; empty if the call names none. */
  readonly queue: string
  /** The client that makes it; `undefined` outside of all clients. */
  readonly client: string | undefined
}

/** The answer to a call. */
export type Reply = Result.Result<object, AwsError>

/** Makes a call. */
export const call = (action: string, body: Body, client?: string): Call => ({
  action,
  body,
  queue: body.QueueName ?? body.QueueUrl?.split("/").at(-1) ?? "",
  client
})

/** Whether a queue is a FIFO queue, by its name. */
export const isFifo = (queue: string): boolean => queue.endsWith(".fifo")

/** Returns the value of a JSON text; an empty object if it is not JSON. */
export const jsonOf = (text = ""): { readonly [name: string]: unknown } => {
  if (text === "") return {}
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}

/** Returns the name in the ARN of a queue, `arn:aws:sqs:<region>:<account>:<name>`. */
export const nameIn = (arn: string): string => arn.split(":")[5] ?? ""
