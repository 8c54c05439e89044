import { assert, describe, test } from "vitest"
import * as Call from "../src/sqs/strict/Call.ts"
import { entryRefused } from "../src/sqs/strict/messageRules.ts"
import { callRefused } from "../src/sqs/strict/rules.ts"

const url = "http://127.0.0.1:1/000000000000/q"
const call = (action: string, body: Call.Body = {}) => Call.make(action, { QueueUrl: url, ...body })
const fifo = (body: Call.Body) => Call.make("SendMessage", { QueueUrl: `${url}.fifo`, ...body })
const text = { DataType: "String", StringValue: "x" }
const attributes = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`a${n}`, text]))
const body = (size: number) => "x".repeat(size)
const mebibyte = 1_048_576
const group = { MessageBody: "x", MessageGroupId: "g" }
const handle = { ReceiptHandle: "h" }

describe("one message", () => {
  test.each<[name: string, call: Call.Call, code: string | undefined]>([
    ["a plain message", call("SendMessage", { MessageBody: "x" }), undefined],
    ["no body", call("SendMessage", { MessageBody: "" }), "MissingParameter"],
    ["tab, line ends and an emoji", call("SendMessage", { MessageBody: "\t\n\r😀" }), undefined],
    ["a control character", call("SendMessage", { MessageBody: "a\u0001" }), "InvalidMessageContents"],
    ["half of a surrogate pair", call("SendMessage", { MessageBody: "\uD83D" }), "InvalidMessageContents"],
    ["a non-character", call("SendMessage", { MessageBody: "\uFFFE" }), "InvalidMessageContents"],
    ["1 MiB", call("SendMessage", { MessageBody: body(mebibyte) }), undefined],
    ["1 MiB and a byte", call("SendMessage", { MessageBody: body(mebibyte + 1) }), "InvalidParameterValue"],
    ["1 MiB in fewer characters", call("SendMessage", { MessageBody: "é".repeat(mebibyte / 2) }), undefined],
    ["and a byte", call("SendMessage", { MessageBody: `x${"é".repeat(mebibyte / 2)}` }), "InvalidParameterValue"],
    [
      "1 MiB with its attribute: name, type and value",
      call("SendMessage", { MessageBody: body(mebibyte - 8), MessageAttributes: { a: text } }),
      undefined
    ],
    [
      "a byte too many with it",
      call("SendMessage", { MessageBody: body(mebibyte - 7), MessageAttributes: { a: text } }),
      "InvalidParameterValue"
    ],
    ["no delay", call("SendMessage", { MessageBody: "x", DelaySeconds: 0 }), undefined],
    ["15 minutes", call("SendMessage", { MessageBody: "x", DelaySeconds: 900 }), undefined],
    ["a second more", call("SendMessage", { MessageBody: "x", DelaySeconds: 901 }), "InvalidParameterValue"],
    ["less than none", call("SendMessage", { MessageBody: "x", DelaySeconds: -1 }), "InvalidParameterValue"],
    ["half a second", call("SendMessage", { MessageBody: "x", DelaySeconds: 0.5 }), "SerializationException"],
    ["10 attributes", call("SendMessage", { MessageBody: "x", MessageAttributes: attributes(10) }), undefined],
    ["11", call("SendMessage", { MessageBody: "x", MessageAttributes: attributes(11) }), "InvalidParameterValue"],
    ...(
      [
        ["AWS.trace", text],
        ["a b", text],
        [".a", text],
        ["a..b", text],
        ["a.", text],
        ["a", { DataType: "Text", StringValue: "x" }],
        ["a", { DataType: "String" }],
        ["a", { DataType: "String", StringValue: "" }],
        ["a", { DataType: "String", StringValue: "\u0000" }],
        ["a", { DataType: "Binary", StringValue: "x" }]
      ] as ReadonlyArray<[name: string, attribute: Call.Attribute]>
    ).map(
      ([name, attribute]) =>
        [
          `attribute ${name} ${JSON.stringify(attribute)}`,
          call("SendMessage", { MessageBody: "x", MessageAttributes: { [name]: attribute } }),
          "InvalidParameterValue"
        ] as [string, Call.Call, string]
    ),
    [
      "types with a suffix",
      call("SendMessage", {
        MessageBody: "x",
        MessageAttributes: { a: { DataType: "Binary.z", BinaryValue: "AA==" } }
      }),
      undefined
    ],
    ["FIFO", fifo(group), undefined],
    ["FIFO with no delay", fifo({ ...group, DelaySeconds: 0 }), undefined],
    ["FIFO with a delay", fifo({ ...group, DelaySeconds: 1 }), "InvalidParameterValue"],
    ["a deduplication id of 128", fifo({ ...group, MessageDeduplicationId: body(128) }), undefined],
    ["a longer one", fifo({ ...group, MessageDeduplicationId: body(129) }), "InvalidParameterValue"],
    ["delete", call("DeleteMessage", handle), undefined],
    ["delete nothing", call("DeleteMessage"), "MissingParameter"],
    ["12 hours", call("ChangeMessageVisibility", { ...handle, VisibilityTimeout: 43_200 }), undefined],
    ["more", call("ChangeMessageVisibility", { ...handle, VisibilityTimeout: 43_201 }), "InvalidParameterValue"],
    ["not said", call("ChangeMessageVisibility", handle), "MissingParameter"]
  ])("%s", (_, one, code) => {
    assert.strictEqual(entryRefused(one, one.body)?.code, code)
    // A batch has the same rules.
    const [entry = {}] = Call.entriesOf({ ...one, action: `${one.action}Batch`, body: { Entries: [one.body] } })
    assert.strictEqual(entryRefused({ ...one, action: `${one.action}Batch` }, entry)?.code, code)
  })
})

describe("the whole call", () => {
  const batch = (...Entries: ReadonlyArray<Call.Entry>) => call("SendMessageBatch", { Entries })
  const set = (Attributes: Record<string, string>) => call("SetQueueAttributes", { Attributes })
  const create = (QueueName: string, Attributes = {}) => Call.make("CreateQueue", { QueueName, Attributes })
  const redrive = (policy: object) => set({ RedrivePolicy: JSON.stringify(policy) })
  const deadLetterTargetArn = "arn:aws:sqs:eu-west-1:000000000000:dead"
  test.each<[name: string, call: Call.Call, code: string | undefined]>([
    ["no entries", batch(), "EmptyBatchRequest"],
    ["10", batch(...Array.from({ length: 10 }, (_, n) => ({ Id: `${n}` }))), undefined],
    ["11", batch(...Array.from({ length: 11 }, (_, n) => ({ Id: `${n}` }))), "TooManyEntriesInBatchRequest"],
    ["twice the same id", batch({ Id: "a" }, { Id: "a" }), "BatchEntryIdsNotDistinct"],
    ["an id with a space", batch({ Id: "a b" }), "InvalidBatchEntryId"],
    ["an id of 81", batch({ Id: body(81) }), "InvalidBatchEntryId"],
    [
      "more than 1 MiB together",
      batch({ Id: "a", MessageBody: body(mebibyte) }, { Id: "b", MessageBody: "x" }),
      "BatchRequestTooLong"
    ],
    ["receive", call("ReceiveMessage", { MaxNumberOfMessages: 10, WaitTimeSeconds: 20 }), undefined],
    ["11 messages", call("ReceiveMessage", { MaxNumberOfMessages: 11 }), "InvalidParameterValue"],
    ["21 seconds", call("ReceiveMessage", { WaitTimeSeconds: 21 }), "InvalidParameterValue"],
    ["attributes", set({ VisibilityTimeout: "43200", MessageRetentionPeriod: "1209600" }), undefined],
    ["a longer visibility", set({ VisibilityTimeout: "43201" }), "InvalidAttributeValue"],
    ["a longer retention", set({ MessageRetentionPeriod: "1209601" }), "InvalidAttributeValue"],
    ["a longer delay", set({ DelaySeconds: "901" }), "InvalidAttributeValue"],
    ["no number", set({ DelaySeconds: "soon" }), "InvalidAttributeValue"],
    ["redrive", redrive({ deadLetterTargetArn, maxReceiveCount: 1000 }), undefined],
    ["redrive with text", redrive({ deadLetterTargetArn, maxReceiveCount: "5" }), undefined],
    ["redrive removed", set({ RedrivePolicy: "" }), undefined],
    ["redrive after 1001", redrive({ deadLetterTargetArn, maxReceiveCount: 1001 }), "InvalidParameterValue"],
    ["redrive after 0", redrive({ deadLetterTargetArn, maxReceiveCount: 0 }), "InvalidParameterValue"],
    ["redrive to nowhere", redrive({ maxReceiveCount: 1 }), "InvalidParameterValue"],
    ["a name", create("A_b-9"), undefined],
    ["a FIFO name", create("a.fifo", { FifoQueue: "true" }), undefined],
    ["a dot", create("a.b"), "InvalidParameterValue"],
    ["81 characters", create(body(81)), "InvalidParameterValue"]
  ])("%s", (_, one, code) => assert.strictEqual(callRefused(one)?.code, code))
})
