/** Deletes and changes of visibility, and what handles still do. */
import { bodies, docs, grouped, row, validated, type World } from "./World.ts"

const api = `${docs}/APIReference`

const one = function* ({ create, receive, send }: World) {
  const url = yield* create()
  yield* send(url, "a")
  const [message] = yield* receive(url)
  return [url, message!] as const
}

const gone =
  "InvalidParameterValue: Value V for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change."

/** The codes alone. */
const codes = (all: ReadonlyArray<string>) => all.map((each) => each.split(":")[0])

export const rows = [
  row("a deleted message is gone", `${api}/API_DeleteMessage.html`, [["done"], ["0", "0", "0"]], function* (world) {
    const [url, { ReceiptHandle }] = yield* one(world)
    return [yield* world.remove(url, ReceiptHandle), yield* world.counts(url)]
  }),
  row("a second delete succeeds", `${api}/API_DeleteMessage.html`, ["done"], function* (world) {
    const [url, { ReceiptHandle }] = yield* one(world)
    yield* world.remove(url, ReceiptHandle)
    return yield* world.remove(url, ReceiptHandle)
  }),
  row(
    "the visibility of a deleted message cannot be changed",
    validated("test_change_visibility_on_deleted_message_raises_invalid_parameter_value"),
    [gone],
    function* (world) {
      const [url, message] = yield* one(world)
      yield* world.remove(url, message.ReceiptHandle)
      return yield* world.change(url, 42, message)
    }
  ),
  row(
    "a handle that SQS has not made is invalid",
    `${api}/API_DeleteMessage.html`,
    [["ReceiptHandleIsInvalid: The input receipt handle is not a valid receipt handle."], ["ReceiptHandleIsInvalid"]],
    function* ({ change, create, remove }) {
      const url = yield* create()
      return [yield* remove(url, "garbage"), codes(yield* change(url, 0, { ReceiptHandle: "garbage" }))]
    }
  ),
  row(
    "so is the handle of another queue",
    `${api}/API_DeleteMessage.html`,
    [["ReceiptHandleIsInvalid"], 1],
    function* (world) {
      const [url, { ReceiptHandle }] = yield* one(world)
      const refused = codes(yield* world.remove(yield* world.create(), ReceiptHandle))
      return [refused, Number((yield* world.counts(url))[1])]
    }
  ),
  row(
    "a wrong entry of a batch fails alone",
    "test_delete_message_batch_invalid_msg_id",
    [
      ["done", "ReceiptHandleIsInvalid", "done"],
      ["0", "0", "0"]
    ],
    function* ({ counts, create, receive, remove, send }) {
      const url = yield* create()
      yield* send(url, "a", "b")
      const [first, second] = yield* receive(url)
      return [codes(yield* remove(url, first?.ReceiptHandle, "garbage", second?.ReceiptHandle)), yield* counts(url)]
    }
  ),
  row(
    "a delete without a handle fails",
    `${api}/API_DeleteMessage.html`,
    ["MissingParameter"],
    function* ({ create, remove }) {
      return codes(yield* remove(yield* create(), undefined))
    }
  ),
  row(
    "a message whose visibility ends at once is received again",
    `${api}/API_ChangeMessageVisibility.html`,
    [["done"], ["a"]],
    function* (world) {
      const [url, message] = yield* one(world)
      return [yield* world.change(url, 0, message), bodies(yield* world.receive(url))]
    }
  ),
  row(
    "visibility is 0 to 43,200 whole seconds",
    `${api}/API_ChangeMessageVisibility.html`,
    [["done"], ["InvalidParameterValue"], ["InvalidParameterValue"]],
    function* (world) {
      const [url, message] = yield* one(world)
      return [
        codes(yield* world.change(url, 0, message)),
        codes(yield* world.change(url, 43_201, message)),
        codes(yield* world.change(url, -1, message))
      ]
    }
  ),
  row(
    "an empty batch of deletes is refused",
    `${api}/API_DeleteMessageBatch.html`,
    "AWS.SimpleQueueService.EmptyBatchRequest",
    function* ({ code, create, remove }) {
      return yield* code(remove(yield* create()))
    }
  ),
  row(
    "a handle of an earlier receive succeeds",
    `${api}/API_DeleteMessage.html`,
    ["done"],
    function* ({ create, receive, remove, send }) {
      const url = yield* create()
      yield* send(url, "a")
      const [first] = yield* receive(url, { VisibilityTimeout: 0 })
      yield* receive(url)
      return yield* remove(url, first?.ReceiptHandle)
    }
  ),
  row(
    "and deletes nothing",
    `${api}/API_DeleteMessage.html`,
    ["0", "1", "0"],
    function* ({ counts, create, receive, remove, send }) {
      const url = yield* create()
      yield* send(url, "a")
      const [first] = yield* receive(url, { VisibilityTimeout: 0 })
      yield* receive(url)
      yield* remove(url, first?.ReceiptHandle)
      return yield* counts(url)
    }
  ),
  row(
    "a handle of a FIFO queue ends when its message is returned",
    validated("test_fifo_receive_message_with_zero_visibility_timeout"),
    ["InvalidParameterValue: Value V for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."],
    function* ({ change, fifo, receive, remove, send }) {
      const url = yield* fifo()
      yield* send(url, ...grouped("1a"))
      const [first] = yield* receive(url)
      yield* change(url, 0, first)
      return yield* remove(url, first?.ReceiptHandle)
    }
  )
]
