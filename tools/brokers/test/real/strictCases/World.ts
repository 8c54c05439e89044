/** What the cases ask a server with, alone or behind the proxy. */
import { SQS, type Message, type ReceiveMessageRequest } from "@aws-sdk/client-sqs"
import { parse } from "../../../src/sqs/address.ts"

export interface Case {
  /** What AWS answers. */
  readonly aws: unknown
  /** Asks, and answers what there is to see. */
  readonly ask: (world: World) => Promise<unknown>
}

export type World = ReturnType<typeof make>

/** That of the servers on this machine. */
const local = "000000000000"

/** Seconds that a receive waits: AWS keeps messages on many machines, and asks some of them if it may not wait. */
interface Options {
  readonly account?: string
  readonly wait?: number
}

export const make = (url: string, prefix: string, { account = local, wait = 0 }: Options = {}) => {
  const { credentials, endpoint, region = "" } = parse(url) ?? {}
  const sqs = new SQS({
    region,
    maxAttempts: 1,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials })
  })
  let count = 0
  const name = () => `${prefix}${count++}`
  const create = async (Attributes: Record<string, string> = {}, QueueName = name()): Promise<string> =>
    (await sqs.createQueue({ QueueName, Attributes })).QueueUrl!
  const arn = (queueUrl: string): string => `arn:aws:sqs:${region}:${account}:${queueUrl.split("/").at(-1)}`
  const redrive = (deadLetters: string): Record<string, string> => ({
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetters, maxReceiveCount: 1 })
  })
  const receive = async (QueueUrl: string, request: Partial<ReceiveMessageRequest> = {}) => {
    const all = { MaxNumberOfMessages: 10, WaitTimeSeconds: wait, MessageSystemAttributeNames: ["All" as const] }
    return (await sqs.receiveMessage({ QueueUrl, ...all, ...request })).Messages ?? []
  }
  return {
    sqs,
    account,
    /** Another one than that of the queues. */
    otherAccount: account === "111111111111" ? "222222222222" : "111111111111",
    region,
    otherRegion: region === "us-east-1" ? "eu-west-1" : "us-east-1",
    name,
    create,
    arn,
    redrive,
    receive,
    /** A FIFO queue with messages whose group is their first character. */
    fifo: async (...bodies: ReadonlyArray<string>): Promise<string> => {
      const QueueUrl = await create({ FifoQueue: "true", ContentBasedDeduplication: "true" }, `${name()}.fifo`)
      const Entries = bodies.map((MessageBody, index) => ({
        Id: String(index),
        MessageBody,
        MessageGroupId: MessageBody.slice(0, 1)
      }))
      await sqs.sendMessageBatch({ QueueUrl, Entries })
      return QueueUrl
    },
    /** A queue, and its dead-letter queue to which SQS has moved a message for each body. */
    given: async (...bodies: ReadonlyArray<string>): Promise<readonly [queue: string, deadLetters: string]> => {
      const deadLetters = await create()
      const queue = await create(redrive(arn(deadLetters)))
      for (const MessageBody of bodies) await sqs.sendMessage({ QueueUrl: queue, MessageBody })
      if (bodies.length > 0) for (let time = 0; time < 2; time++) await receive(queue, { VisibilityTimeout: 0 })
      return [queue, deadLetters]
    }
  }
}

/** The code and message of the error, or `done`. */
export const outcome = async (action: () => Promise<unknown>): Promise<unknown> =>
  action().then(
    () => "done",
    (cause: { readonly Code?: string; readonly name: string; readonly message: string }) => [
      cause.Code ?? cause.name,
      cause.message
    ]
  )

/** The bodies by their first character: AWS says nothing of the order of groups. */
export const byGroup = (messages: ReadonlyArray<Message>): Readonly<Record<string, string>> => {
  const groups: Record<string, string> = {}
  for (const { Body = "" } of messages) groups[Body.slice(0, 1)] = `${groups[Body.slice(0, 1)] ?? ""} ${Body}`.trim()
  return groups
}

/** Puts messages back. */
export const giveBack = async ({ sqs }: World, QueueUrl: string, messages: ReadonlyArray<Message>): Promise<void> => {
  for (const { ReceiptHandle } of messages) {
    await sqs.changeMessageVisibility({ QueueUrl, ReceiptHandle, VisibilityTimeout: 0 })
  }
}
