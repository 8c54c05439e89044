/** Messages that are sent, and those that are refused. */
import * as Effect from "effect/Effect"
import { bodies, byGroup, docs, fauxqs, grouped, row, unlike, validated } from "./World.ts"

const api = `${docs}/APIReference`
const guide = `${docs}/SQSDeveloperGuide`
const mebibyte = 1_048_576

const text = (StringValue = "x") => ({ DataType: "String", StringValue })

/** Attributes that are sent alone, and whether each is accepted. */
const attributes: ReadonlyArray<readonly [name: string, attribute: object, isGood: boolean]> = [
  ["attr.1øßä", text(), true],
  ["a", { DataType: "Binary.z", BinaryValue: new Uint8Array([0]) }, true],
  ["a", { DataType: "Number", StringValue: "1" }, true],
  ["a", text("\b"), false],
  ["aWs.a", text(), false],
  ["AMAZON.a", text(), false],
  [".a", text(), false],
  ["a.", text(), false],
  ["a..b", text(), false],
  ["a b", text(), false],
  ["L".repeat(257), text(), false],
  ["a", { DataType: "Invalid", StringValue: "x" }, false],
  ["a", { DataType: `Number.${"L".repeat(256)}`, StringValue: "1" }, false]
]

const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`a${n}`, text()]))

/** The codes alone: the texts of AWS are not known. */
const codes = (all: ReadonlyArray<string>) => all.map((one) => one.split(":")[0])

export const rows = [
  row(
    "a batch has 1 to 10 entries",
    `${api}/API_SendMessageBatch.html`,
    ["AWS.SimpleQueueService.EmptyBatchRequest", "done", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"],
    function* ({ batch, code, create }) {
      const url = yield* create()
      return yield* Effect.forEach([0, 10, 11], (length) =>
        code(
          batch(
            url,
            Array.from({ length }, () => "x")
          )
        )
      )
    }
  ),
  row(
    "with different ids of 1 to 80 letters, digits, hyphens and underscores",
    `${api}/API_SendMessageBatch.html`,
    [
      "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
      "AWS.SimpleQueueService.InvalidBatchEntryId",
      "AWS.SimpleQueueService.InvalidBatchEntryId",
      "done"
    ],
    function* ({ ask, client, code, create }) {
      const QueueUrl = yield* create()
      const send = (...ids: ReadonlyArray<string>) =>
        code(ask(() => client.sendMessageBatch({ QueueUrl, Entries: ids.map((Id) => ({ Id, MessageBody: "x" })) })))
      return [
        yield* send("a", "a"),
        yield* send("a b"),
        yield* send("x".repeat(81)),
        yield* send("x".repeat(80), "A_-9")
      ]
    }
  ),
  row(
    "of 1 MiB together",
    `${guide}/quotas-messages.html`,
    ["done", "AWS.SimpleQueueService.BatchRequestTooLong"],
    function* ({ batch, code, create }) {
      const url = yield* create()
      const half = "x".repeat(mebibyte / 2)
      return [yield* code(batch(url, [half, half])), yield* code(batch(url, [half, `${half}x`]))]
    }
  ),
  row(
    "an entry larger than the queue's MaximumMessageSize fails, the others are sent",
    validated("test_send_batch_message_size"),
    [
      "done",
      "InvalidParameterValue: One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."
    ],
    function* ({ create, send }) {
      return yield* send(yield* create({ MaximumMessageSize: "1024" }), "a".repeat(1024), "a".repeat(1025))
    }
  ),
  row(
    "the size counts names, types and values of attributes",
    `${guide}/quotas-messages.html`,
    ["done", "InvalidParameterValue"],
    function* ({ create, send }) {
      const entry = (size: number) => ({ MessageBody: "a".repeat(size), MessageAttributes: { k: text() } })
      return codes(yield* send(yield* create({ MaximumMessageSize: "1024" }), entry(1016), entry(1017)))
    }
  ),
  row(
    "texts have the characters of XML, and one at least",
    `${api}/API_SendMessage.html`,
    ["done", "InvalidMessageContents", "InvalidMessageContents", "MissingParameter"],
    function* ({ create, send }) {
      return codes(yield* send(yield* create(), "\t\n\r😀", "a\u0001", "\uFFFE", ""))
    }
  ),
  row(
    "the names, types and characters of attributes are checked",
    validated("test_send_message_with_invalid_string_attributes"),
    attributes.map(([, , isGood]) => (isGood ? "done" : "InvalidParameterValue")),
    function* ({ create, send }) {
      const url = yield* create()
      const all = yield* Effect.forEach(
        attributes,
        ([name, attribute]) =>
          send(url, { MessageBody: "x", MessageAttributes: { [name]: attribute as ReturnType<typeof text> } }) // Cast, because some are wrong.
      )
      return codes(all.flat())
    }
  ),
  row(
    "a message has 10 attributes",
    `${guide}/sqs-message-metadata.html`,
    ["done", "InvalidParameterValue"],
    function* ({ create, send }) {
      const url = yield* create()
      const entry = (count: number) => ({ MessageBody: "x", MessageAttributes: many(count) })
      return codes(yield* send(url, entry(10), entry(11)))
    }
  ),
  row(
    "a delay is 0 to 900 whole seconds",
    `${api}/API_SendMessage.html`,
    ["done", "done", "InvalidParameterValue", "InvalidParameterValue"],
    function* ({ create, send }) {
      const url = yield* create()
      const entry = (DelaySeconds: number) => ({ MessageBody: "x", DelaySeconds })
      return codes(yield* send(url, entry(0), entry(900), entry(901), entry(-1)))
    }
  ),
  row(
    "a delayed message is counted as delayed",
    `${guide}/sqs-delay-queues.html`,
    ["1", "0", "1"],
    function* ({ counts, create, send }) {
      const url = yield* create()
      yield* send(url, "a", { MessageBody: "b", DelaySeconds: 900 })
      return yield* counts(url)
    }
  ),
  row(
    "a queue delays by its own delay, unless a message has another",
    `${guide}/sqs-delay-queues.html`,
    ["b"],
    function* ({ create, receive, send }) {
      const url = yield* create({ DelaySeconds: "900" })
      yield* send(url, "a", { MessageBody: "b", DelaySeconds: 0 })
      return bodies(yield* receive(url))
    }
  ),
  row(
    "a batch to a FIFO queue with an entry without a group is refused as a whole",
    validated("test_send_batch_missing_message_group_id_for_fifo_queue"),
    ["InvalidParameterValue", 0],
    function* ({ batch, code, fifo, receive }) {
      const url = yield* fifo()
      const refused = yield* code(batch(url, [{ MessageBody: "a", MessageGroupId: "g" }, "b"]))
      return [refused, (yield* receive(url)).length]
    }
  ),
  row(
    "so is one without a deduplication id, where the queue does not make it",
    validated("test_send_batch_missing_deduplication_id_for_fifo_queue"),
    "InvalidParameterValue",
    function* ({ batch, code, fifo }) {
      const entry = { MessageBody: "x", MessageGroupId: "g" }
      const url = yield* fifo({ ContentBasedDeduplication: "false" })
      return yield* code(batch(url, [{ ...entry, MessageDeduplicationId: "1" }, entry]))
    }
  ),
  row(
    "a FIFO queue delays no single message",
    `${api}/API_SendMessage.html`,
    ["done", "InvalidParameterValue"],
    function* ({ fifo, send }) {
      const entry = (DelaySeconds: number) => ({ MessageBody: String(DelaySeconds), MessageGroupId: "g", DelaySeconds })
      return codes(yield* send(yield* fifo(), entry(0), entry(1)))
    }
  ),
  row(
    "groups and deduplication ids have 1 to 128 characters",
    `${api}/API_SendMessage.html`,
    ["done", "InvalidParameterValue", "InvalidParameterValue", "InvalidParameterValue"],
    function* ({ fifo, send }) {
      const entry = (MessageGroupId: string, MessageDeduplicationId: string) => ({
        MessageBody: "x",
        MessageGroupId,
        MessageDeduplicationId
      })
      const long = "x".repeat(128)
      return codes(
        yield* send(yield* fifo(), entry(long, long), entry(`${long}x`, "1"), entry("g", `${long}x`), entry("a b", "2"))
      )
    }
  ),
  row(
    "of messages with one deduplication id, the first is stored",
    `${guide}/using-messagededuplicationid-property.html`,
    [["done", "done"], ["first"], true],
    function* ({ batch, fifo, receive, send }) {
      const url = yield* fifo()
      const entry = (MessageBody: string) => ({ MessageBody, MessageGroupId: "g", MessageDeduplicationId: "same" })
      const sent = yield* send(url, entry("first"), entry("second"))
      const [got] = yield* receive(url)
      const { Successful = [] } = yield* batch(url, [entry("third")])
      return [sent, bodies([got!]), Successful[0]?.MessageId === got?.MessageId]
    }
  ),
  row(
    "also once it is deleted",
    `${guide}/using-messagededuplicationid-property.html`,
    0,
    function* ({ fifo, receive, remove, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a"))
      const [got] = yield* receive(url)
      yield* remove(url, got?.ReceiptHandle)
      yield* send(url, ...grouped("1a"))
      return (yield* receive(url)).length
    }
  ),
  row(
    "also in another group",
    `${guide}/using-messagededuplicationid-property.html`,
    { 1: "1a" },
    function* ({ fifo, receive, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a").flatMap((each) => [each, { ...each, MessageGroupId: "other" }]))
      return byGroup(yield* receive(url))
    }
  ),
  unlike(
    fauxqs,
    row(
      "unless the queue says that ids hold in their group",
      `${api}/API_SetQueueAttributes.html`,
      2,
      function* ({ fifo, receive, send }) {
        const url = yield* fifo({ DeduplicationScope: "messageGroup", FifoThroughputLimit: "perMessageGroupId" })
        yield* send(url, ...grouped("1a").flatMap((each) => [each, { ...each, MessageGroupId: "other" }]))
        return (yield* receive(url)).length
      }
    )
  ),
  row(
    "a message has its attributes, bytes as bytes",
    `${guide}/sqs-message-metadata.html`,
    [text("ü"), { DataType: "Binary", BinaryValue: [0, 255] }, { DataType: "Number.x", StringValue: "9.50" }],
    function* ({ create, receive, send }) {
      const url = yield* create()
      const MessageAttributes = {
        s: text("ü"),
        b: { DataType: "Binary", BinaryValue: new Uint8Array([0, 255]) },
        n: { DataType: "Number.x", StringValue: "9.50" }
      }
      yield* send(url, { MessageBody: "x", MessageAttributes })
      const [{ MessageAttributes: { b, n, s } = {} } = {}] = yield* receive(url)
      return [
        { DataType: s?.DataType, StringValue: s?.StringValue },
        { DataType: b?.DataType, BinaryValue: [...(b?.BinaryValue ?? [])] },
        { DataType: n?.DataType, StringValue: n?.StringValue }
      ]
    }
  )
]
