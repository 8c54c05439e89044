/** Messages that are refused, and receipt handles. */
import { outcome, type Case } from "./World.ts"

const invalid = "InvalidParameterValue"

const text = { DataType: "String", StringValue: "x" }

/** Message attributes, and whether AWS takes them. */
const attributes: ReadonlyArray<readonly [name: string, attribute: typeof text, isGood: boolean]> = [
  ["attr.1øßä", text, true],
  ["a", { DataType: "String", StringValue: "\b\v" }, false],
  ["aWs.a", text, false],
  ["AMAZON.a", text, false],
  [".a", text, false],
  ...["!", '"', "§", "(", "?"].map((sign) => [`a${sign}b`, text, false] as const),
  ["L".repeat(257), text, false],
  ["a", { DataType: "Invalid", StringValue: "x" }, false],
  ["a", { DataType: `Number.${"L".repeat(256)}`, StringValue: "1" }, false],
  ["a.", text, false]
]

export const cases = {
  sizeInBatch: {
    aws: [
      ["small"],
      [
        [
          "large",
          invalid,
          "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."
        ]
      ]
    ],
    ask: async ({ create, sqs }) => {
      const { Failed = [], Successful = [] } = await sqs.sendMessageBatch({
        QueueUrl: await create({ MaximumMessageSize: "1024" }),
        Entries: [
          { Id: "small", MessageBody: "a".repeat(1024) },
          { Id: "large", MessageBody: "a".repeat(1025) }
        ]
      })
      return [Successful.map(({ Id }) => Id), Failed.map(({ Code, Id, Message }) => [Id, Code, Message])]
    }
  },
  sizeChanged: {
    aws: ["done", [invalid, "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."]],
    ask: async ({ create, sqs }) => {
      const QueueUrl = await create()
      await sqs.sendMessage({ QueueUrl, MessageBody: "before" })
      await sqs.setQueueAttributes({ QueueUrl, Attributes: { MaximumMessageSize: "1024" } })
      const send = (size: number) =>
        outcome(() => sqs.sendMessage({ QueueUrl, MessageBody: "a".repeat(size), MessageAttributes: { k: text } }))
      return [await send(1016), await send(1017)]
    }
  },
  batchWithoutGroup: {
    aws: [invalid, "The request must contain the parameter MessageGroupId."],
    ask: async ({ fifo, sqs }) => {
      const Entries = [
        { Id: "a", MessageBody: "x", MessageGroupId: "g" },
        { Id: "b", MessageBody: "y" }
      ]
      const QueueUrl = await fifo("1a")
      return outcome(() => sqs.sendMessageBatch({ QueueUrl, Entries }))
    }
  },
  batchWithoutDeduplication: {
    aws: [
      invalid,
      "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"
    ],
    ask: async ({ create, name, sqs }) => {
      const QueueUrl = await create({ FifoQueue: "true" }, `${name()}.fifo`)
      const entry = { MessageBody: "x", MessageGroupId: "g" }
      const Entries = [
        { ...entry, Id: "a", MessageDeduplicationId: "1" },
        { ...entry, Id: "b" }
      ]
      return outcome(() => sqs.sendMessageBatch({ QueueUrl, Entries }))
    }
  },
  attributeNames: {
    aws: attributes.map(([, , isGood]) => (isGood ? "done" : invalid)),
    ask: async ({ create, sqs }) => {
      const QueueUrl = await create()
      const seen: Array<unknown> = []
      for (const [name, attribute] of attributes) {
        const MessageAttributes = { [name]: attribute }
        const got = await outcome(() => sqs.sendMessage({ QueueUrl, MessageBody: "x", MessageAttributes }))
        seen.push(Array.isArray(got) ? got[0] : got)
      }
      return seen
    }
  },
  deletedMessage: {
    aws: [
      invalid,
      "Value H for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."
    ],
    ask: async ({ create, receive, sqs }) => {
      const QueueUrl = await create()
      await sqs.sendMessage({ QueueUrl, MessageBody: "x" })
      const [{ ReceiptHandle = "" } = {}] = await receive(QueueUrl)
      await sqs.deleteMessage({ QueueUrl, ReceiptHandle })
      const got = await outcome(() => sqs.changeMessageVisibility({ QueueUrl, ReceiptHandle, VisibilityTimeout: 42 }))
      return Array.isArray(got) ? got.map((one) => String(one).replace(ReceiptHandle, "H")) : got
    }
  }
} satisfies Readonly<Record<string, Case>>
