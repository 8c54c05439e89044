/** Receives: their attributes, counts, order and repetitions. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { bodies, byGroup, docs, fauxqs, grouped, row, unlike, validated, type World } from "./World.ts"

const api = `${docs}/APIReference`
const guide = `${docs}/SQSDeveloperGuide`

/** Two messages of a group of three are received, and one of these is done to each; returns what is received then. */
const afterTwo = (...acts: readonly ["back" | "deleted" | "kept", "back" | "deleted" | "kept"]) =>
  function* ({ change, fifo, receive, remove, send }: World) {
    const url = yield* fifo()
    yield* send(url, ...grouped("1a", "1b", "1c", "2a"))
    const two = yield* receive(url, { MaxNumberOfMessages: 2 })
    for (const [index, one] of two.entries()) {
      if (acts[index] === "back") yield* change(url, 0, one)
      if (acts[index] === "deleted") yield* remove(url, one.ReceiptHandle)
    }
    return byGroup(yield* receive(url))
  }

const group = `${guide}/using-messagegroupid-property.html`

export const rows = [
  row(
    "a receive is for 1 to 10 messages, waits up to 20 s and hides up to 12 h",
    `${api}/API_ReceiveMessage.html`,
    ["done", ...Array.from({ length: 4 }, () => "InvalidParameterValue")],
    function* ({ code, create, receive }) {
      const url = yield* create()
      return yield* Effect.forEach(
        [
          { MaxNumberOfMessages: 1 },
          { MaxNumberOfMessages: 0 },
          { MaxNumberOfMessages: 11 },
          { WaitTimeSeconds: 21 },
          { VisibilityTimeout: 43_201 }
        ],
        (options) => code(receive(url, options))
      )
    }
  ),
  row(
    "a receive is for one message by default",
    `${api}/API_ReceiveMessage.html`,
    1,
    function* ({ ask, client, create, send }) {
      const QueueUrl = yield* create()
      yield* send(QueueUrl, "a", "b")
      return (yield* ask(() => client.receiveMessage({ QueueUrl }))).Messages?.length
    }
  ),
  row("an empty receive has no messages", `${api}/API_ReceiveMessage.html`, true, function* ({ ask, client, create }) {
    const QueueUrl = yield* create()
    return (yield* ask(() => client.receiveMessage({ QueueUrl }))).Messages === undefined
  }),
  unlike(
    fauxqs,
    row(
      "without names there are no attributes",
      `${api}/API_ReceiveMessage.html`,
      [true, true, "a"],
      function* ({ ask, client, create, send }) {
        const QueueUrl = yield* create()
        yield* send(QueueUrl, { MessageBody: "a", MessageAttributes: { k: { DataType: "String", StringValue: "v" } } })
        const [message] = (yield* ask(() => client.receiveMessage({ QueueUrl }))).Messages ?? []
        return [message?.Attributes === undefined, message?.MessageAttributes === undefined, message?.Body]
      }
    )
  ),
  row(
    "attributes are returned that a receive names",
    `${api}/API_ReceiveMessage.html`,
    [["ApproximateReceiveCount"], ["k"]],
    function* ({ create, receive, send }) {
      const url = yield* create()
      const text = { DataType: "String", StringValue: "v" }
      yield* send(url, { MessageBody: "a", MessageAttributes: { k: text, other: text } })
      const [message] = yield* receive(url, {
        MessageSystemAttributeNames: ["ApproximateReceiveCount"],
        MessageAttributeNames: ["k"]
      })
      return [Object.keys(message?.Attributes ?? {}), Object.keys(message?.MessageAttributes ?? {})]
    }
  ),
  row(
    "system attributes of a message",
    `${api}/API_ReceiveMessage.html`,
    ["ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "SenderId", "SentTimestamp"],
    function* ({ create, receive, send }) {
      const url = yield* create()
      yield* send(url, "a")
      return Object.keys((yield* receive(url))[0]?.Attributes ?? {}).toSorted()
    }
  ),
  row(
    "and of a FIFO queue's",
    `${api}/API_ReceiveMessage.html`,
    ["MessageDeduplicationId", "MessageGroupId", "SequenceNumber"],
    function* ({ fifo, receive, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a"))
      const names = Object.keys((yield* receive(url))[0]?.Attributes ?? {})
      return names.filter((name) => /Group|Dedup|Sequence/.test(name)).toSorted()
    }
  ),
  unlike(
    fauxqs,
    row(
      "a trace header travels with its message",
      `${api}/API_SendMessage.html`,
      "Root=1",
      function* ({ create, receive, send }) {
        const url = yield* create()
        const AWSTraceHeader = { DataType: "String", StringValue: "Root=1" }
        yield* send(url, { MessageBody: "a", MessageSystemAttributes: { AWSTraceHeader } })
        return (yield* receive(url))[0]?.Attributes?.AWSTraceHeader
      }
    )
  ),
  row(
    "a standard queue keeps the group of a message",
    validated("test_fair_queue_with_message_group_id"),
    "g",
    function* ({ create, receive, send }) {
      const url = yield* create()
      yield* send(url, { MessageBody: "a", MessageGroupId: "g" })
      return (yield* receive(url))[0]?.Attributes?.MessageGroupId
    }
  ),
  row(
    "every receive counts, and has its own handle",
    `${api}/API_ReceiveMessage.html`,
    [["1", "2", "3"], 3, 1],
    function* ({ create, receive, send }) {
      const url = yield* create()
      yield* send(url, "a")
      const seen = [
        yield* receive(url, { VisibilityTimeout: 0 }),
        yield* receive(url, { VisibilityTimeout: 0 }),
        yield* receive(url)
      ].flat()
      return [
        seen.map(({ Attributes }) => Attributes?.ApproximateReceiveCount),
        new Set(seen.map(({ ReceiptHandle }) => ReceiptHandle)).size,
        new Set(seen.map(({ MessageId }) => MessageId)).size
      ]
    }
  ),
  row(
    "the time of the first receive stays",
    `${api}/API_ReceiveMessage.html`,
    true,
    function* ({ create, receive, send }) {
      const url = yield* create()
      yield* send(url, "a")
      const first = yield* receive(url, { VisibilityTimeout: 0 })
      const second = yield* receive(url)
      const at = ([one]: typeof first) => one?.Attributes?.ApproximateFirstReceiveTimestamp
      return at(first) === at(second)
    }
  ),
  row(
    "a received message is hidden",
    `${guide}/sqs-visibility-timeout.html`,
    [["a"], [], ["0", "1", "0"]],
    function* ({ counts, create, receive, send }) {
      const url = yield* create()
      yield* send(url, "a")
      return [bodies(yield* receive(url)), bodies(yield* receive(url)), yield* counts(url)]
    }
  ),
  row(
    "a long poll receives what is sent meanwhile",
    `${guide}/sqs-short-and-long-polling.html`,
    ["a"],
    function* ({ create, receive, send }) {
      const url = yield* create()
      const poll = yield* Effect.forkChild(receive(url, { WaitTimeSeconds: 20 }), { startImmediately: true })
      yield* Effect.sleep(200)
      yield* send(url, "a")
      return bodies(yield* Fiber.join(poll))
    }
  ),
  row(
    "a message that was received too often is moved by the next receive",
    validated("test_dead_letter_queue_message_attributes"),
    [["a"], [], ["1", "2"]],
    function* ({ create, receive, redrive, send }) {
      const deadLetters = yield* create()
      const url = yield* create(yield* redrive(deadLetters, 1))
      yield* send(url, "a")
      const first = yield* receive(url, { VisibilityTimeout: 0 })
      const second = yield* receive(url)
      const [letter] = yield* receive(deadLetters)
      return [bodies(first), bodies(second), [first[0], letter].map((one) => one?.Attributes?.ApproximateReceiveCount)]
    }
  ),
  row(
    "it keeps its id and its attributes, and has its source",
    validated("test_dead_letter_queue_message_attributes"),
    [true, "v", true],
    function* ({ arn, create, receive, redrive, send }) {
      const deadLetters = yield* create()
      const url = yield* create(yield* redrive(deadLetters, 1))
      yield* send(url, { MessageBody: "a", MessageAttributes: { k: { DataType: "String", StringValue: "v" } } })
      const [first] = yield* receive(url, { VisibilityTimeout: 0 })
      yield* receive(url)
      const [letter] = yield* receive(deadLetters)
      return [
        letter?.MessageId === first?.MessageId,
        letter?.MessageAttributes?.["k"]?.StringValue,
        letter?.Attributes?.DeadLetterQueueSourceArn === (yield* arn(url))
      ]
    }
  ),
  row(
    "a redrive policy allows its number of receives",
    `${guide}/sqs-dead-letter-queues.html`,
    [1, 1, 1, 0],
    function* ({ create, receive, redrive, send }) {
      const url = yield* create(yield* redrive(yield* create(), 3))
      yield* send(url, "a")
      const times = [1, 2, 3, 4]
      return yield* Effect.forEach(times, () =>
        Effect.map(receive(url, { VisibilityTimeout: 0 }), ({ length }) => length)
      )
    }
  ),
  row(
    "a receive has all messages of a FIFO group, in their order",
    validated("test_fifo_receive_message_group_id_ordering"),
    { 1: "1a 1b 1c", 2: "2a" },
    function* ({ fifo, receive, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a", "2a", "1b", "1c"))
      return byGroup(yield* receive(url))
    }
  ),
  row(
    "no message of a FIFO group is received while one in front of it is in flight",
    validated("test_fifo_receive_message_visibility_timeout_shared_in_group"),
    [{ 1: "1a 1b" }, { 2: "2a" }],
    function* ({ fifo, receive, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a", "1b", "1c", "2a"))
      return [byGroup(yield* receive(url, { MaxNumberOfMessages: 2 })), byGroup(yield* receive(url))]
    }
  ),
  row(
    "a receive with no visibility timeout leaves the groups free",
    validated("test_fifo_receive_message_with_zero_visibility_timeout"),
    { 1: "1a 1b", 2: "2a 2b" },
    function* ({ fifo, receive, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a", "2a", "2b", "1b"))
      yield* receive(url, { MaxNumberOfMessages: 3, VisibilityTimeout: 0 })
      return byGroup(yield* receive(url))
    }
  ),
  row(
    "a group goes on when all its messages in flight are deleted",
    validated("test_fifo_message_group_visibility_after_partial_delete"),
    { 1: "1c", 2: "2a" },
    afterTwo("deleted", "deleted")
  ),
  row(
    "not when one of them is",
    validated("test_fifo_message_group_visibility_after_partial_delete"),
    { 2: "2a" },
    afterTwo("deleted", "kept")
  ),
  row(
    "a message that goes back is received again though later ones are in flight",
    validated("test_fifo_message_group_visibility_after_terminate_visibility_timeout"),
    { 1: "1a", 2: "2a" },
    afterTwo("back", "kept")
  ),
  row(
    "a message in flight holds back those behind it, and none in front",
    validated("test_fifo_group_visibility_extends_with_change_message_visibility"),
    { 2: "2a" },
    afterTwo("kept", "back")
  ),
  row("messages that go back keep their places", group, { 1: "1a 1b 1c", 2: "2a" }, afterTwo("back", "back")),
  row(
    "a receive of a FIFO queue is repeated by its id, with the same handles",
    `${api}/API_ReceiveMessage.html`,
    [["1a"], true, "1"],
    function* ({ fifo, receive, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a", "1b"))
      const options = { ReceiveRequestAttemptId: "same", MaxNumberOfMessages: 1 }
      const [first] = yield* receive(url, options)
      const [again] = yield* receive(url, options)
      return [
        bodies([again!]),
        again?.ReceiptHandle === first?.ReceiptHandle,
        again?.Attributes?.ApproximateReceiveCount
      ]
    }
  ),
  row(
    "not once a message of it was deleted",
    `${guide}/using-receiverequestattemptid-request-parameter.html`,
    "InvalidParameterValue",
    function* ({ code, fifo, receive, remove, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a"))
      const options = { ReceiveRequestAttemptId: "same" }
      const [first] = yield* receive(url, options)
      yield* remove(url, first?.ReceiptHandle)
      return yield* code(receive(url, options))
    }
  ),
  row(
    "nor once its visibility was changed",
    `${guide}/using-receiverequestattemptid-request-parameter.html`,
    "InvalidParameterValue",
    function* ({ change, code, fifo, receive, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a"))
      const options = { ReceiveRequestAttemptId: "same" }
      const [first] = yield* receive(url, options)
      yield* change(url, 60, first)
      return yield* code(receive(url, options))
    }
  )
]
