/** Rows that let time pass. Their servers have a quota of three messages in flight, and one row each. */
import { bodies, byGroup, docs, fauxqs, grouped, quota, row, unlike, validated } from "./World.ts"

const api = `${docs}/APIReference`
const guide = `${docs}/SQSDeveloperGuide`
const expired =
  "InvalidParameterValue: Value V for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
const total =
  "InvalidParameterValue: Value V for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"

export const rows = [
  row(
    "a message is received again when its visibility timeout is over, not before",
    `${guide}/sqs-visibility-timeout.html`,
    [[], ["a"], "2"],
    function* ({ create, receive, send, wait }) {
      const url = yield* create({ VisibilityTimeout: "30" })
      yield* send(url, "a")
      yield* receive(url)
      yield* wait(28)
      const early = yield* receive(url)
      yield* wait(3)
      const due = yield* receive(url)
      return [bodies(early), bodies(due), due[0]?.Attributes?.ApproximateReceiveCount]
    }
  ),
  row(
    "a message waits again when its timeout is over, though no client receives it",
    `${guide}/sqs-visibility-timeout.html`,
    [
      ["0", "1", "0"],
      ["1", "0", "0"]
    ],
    function* ({ counts, create, receive, send, wait }) {
      const url = yield* create({ VisibilityTimeout: "30" })
      yield* send(url, "a")
      yield* receive(url)
      const hidden = yield* counts(url)
      yield* wait(31)
      return [hidden, yield* counts(url)]
    }
  ),
  row(
    "a change of visibility counts from its call",
    `${api}/API_ChangeMessageVisibility.html`,
    [[], ["a"]],
    function* ({ change, create, receive, send, wait }) {
      const url = yield* create({ VisibilityTimeout: "30" })
      yield* send(url, "a")
      const [message] = yield* receive(url)
      yield* wait(20)
      yield* change(url, 30, message)
      yield* wait(28)
      const early = yield* receive(url)
      yield* wait(3)
      return [bodies(early), bodies(yield* receive(url))]
    }
  ),
  row(
    "a change of visibility is forgotten at the next receive",
    `${api}/API_ChangeMessageVisibility.html`,
    [["a"], ["a"]],
    function* ({ change, create, receive, send, wait }) {
      const url = yield* create({ VisibilityTimeout: "30" })
      yield* send(url, "a")
      const [message] = yield* receive(url)
      yield* change(url, 600, message)
      yield* wait(601)
      const second = yield* receive(url)
      yield* wait(31)
      return [bodies(second), bodies(yield* receive(url))]
    }
  ),
  row(
    "a message is hidden for 12 hours from its receive, at most",
    `${guide}/sqs-visibility-timeout.html`,
    [[total], ["done"]],
    function* ({ change, create, receive, send, wait }) {
      const url = yield* create({ VisibilityTimeout: "600" })
      yield* send(url, "a")
      const [message] = yield* receive(url)
      yield* wait(100)
      return [yield* change(url, 43_150, message), yield* change(url, 43_050, message)]
    }
  ),
  row(
    "a delayed message is received when its delay is over, not before",
    `${guide}/sqs-delay-queues.html`,
    [[], ["a"], "1"],
    function* ({ create, receive, send, wait }) {
      const url = yield* create()
      yield* send(url, { MessageBody: "a", DelaySeconds: 900 })
      yield* wait(898)
      const early = yield* receive(url)
      yield* wait(3)
      const due = yield* receive(url)
      return [bodies(early), bodies(due), due[0]?.Attributes?.ApproximateReceiveCount]
    }
  ),
  unlike(
    fauxqs,
    row(
      "a message is gone when its retention is over, also in flight",
      `${guide}/sqs-basic-architecture.html`,
      [["1", "1", "0"], []],
      function* ({ counts, create, receive, send, wait }) {
        const url = yield* create({ MessageRetentionPeriod: "60", VisibilityTimeout: "600" })
        yield* send(url, "a", "b")
        yield* receive(url, { MaxNumberOfMessages: 1 })
        const before = yield* counts(url)
        yield* wait(61)
        return [before, bodies(yield* receive(url))]
      }
    )
  ),
  row(
    "an expired handle of a standard queue changes visibility without an error",
    validated("test_change_message_visibility_after_visibility_timeout_expiration"),
    [["a"], ["done"]],
    function* ({ change, create, receive, send, wait }) {
      const url = yield* create({ VisibilityTimeout: "30" })
      yield* send(url, "a")
      const [message] = yield* receive(url)
      yield* wait(31)
      return [bodies(yield* receive(url)), yield* change(url, 2, message)]
    }
  ),
  row(
    "an expired handle of a standard queue deletes without an error",
    validated("test_delete_after_visibility_timeout"),
    ["done"],
    function* ({ create, receive, remove, send, wait }) {
      const url = yield* create({ VisibilityTimeout: "30" })
      yield* send(url, "a")
      const [message] = yield* receive(url)
      yield* wait(31)
      return yield* remove(url, message?.ReceiptHandle)
    }
  ),
  row(
    "an expired handle of a FIFO queue does neither",
    validated("test_fifo_delete_after_visibility_timeout"),
    [[expired], [expired]],
    function* ({ change, fifo, receive, remove, send, wait }) {
      const url = yield* fifo({ VisibilityTimeout: "30" })
      yield* send(url, ...grouped("1a"))
      const [message] = yield* receive(url)
      yield* wait(31)
      return [yield* remove(url, message?.ReceiptHandle), yield* change(url, 30, message)]
    }
  ),
  row(
    "messages of a FIFO group are received in order when their timeout is over",
    `${guide}/using-messagegroupid-property.html`,
    { 1: "1a 1b" },
    function* ({ fifo, receive, send, wait }) {
      const url = yield* fifo({ VisibilityTimeout: "30" })
      yield* send(url, ...grouped("1a", "1b"))
      yield* receive(url)
      yield* wait(31)
      return byGroup(yield* receive(url))
    }
  ),
  row(
    "a deduplication id is free after five minutes",
    `${guide}/using-messagededuplicationid-property.html`,
    [1, 2],
    function* ({ counts, fifo, send, wait }) {
      const url = yield* fifo()
      const waiting = function* () {
        return Number((yield* counts(url))[0])
      }
      yield* send(url, ...grouped("1a"))
      yield* wait(298)
      yield* send(url, ...grouped("1a"))
      const before = yield* waiting()
      yield* wait(3)
      yield* send(url, ...grouped("1a"))
      return [before, yield* waiting()]
    }
  ),
  row(
    "a receive by an id of an expired one is a new one",
    `${guide}/using-receiverequestattemptid-request-parameter.html`,
    [["1a"], "2"],
    function* ({ fifo, receive, send, wait }) {
      const url = yield* fifo({ VisibilityTimeout: "30" })
      yield* send(url, ...grouped("1a"))
      yield* receive(url, { ReceiveRequestAttemptId: "same" })
      yield* wait(31)
      const again = yield* receive(url, { ReceiveRequestAttemptId: "same" })
      return [bodies(again), again[0]?.Attributes?.ApproximateReceiveCount]
    }
  ),
  row(
    "a repeated receive begins the visibility timeout anew",
    `${api}/API_ReceiveMessage.html`,
    [[], ["1a"]],
    function* ({ fifo, receive, send, wait }) {
      const url = yield* fifo({ VisibilityTimeout: "30" })
      yield* send(url, ...grouped("1a"))
      yield* receive(url, { ReceiveRequestAttemptId: "same" })
      yield* wait(20)
      yield* receive(url, { ReceiveRequestAttemptId: "same" })
      yield* wait(20)
      const early = yield* receive(url)
      yield* wait(11)
      return [bodies(early), bodies(yield* receive(url))]
    }
  ),
  row(
    "a queue can be purged again after a minute",
    `${api}/API_PurgeQueue.html`,
    ["AWS.SimpleQueueService.PurgeQueueInProgress", "done"],
    function* ({ ask, client, code, create, wait }) {
      const QueueUrl = yield* create()
      const purge = ask(() => client.purgeQueue({ QueueUrl }))
      yield* purge
      yield* wait(58)
      const early = yield* code(purge)
      yield* wait(3)
      return [early, yield* code(purge)]
    }
  ),
  row(
    "at the quota of messages in flight, a short poll of a standard queue is refused",
    `${guide}/quotas-messages.html`,
    [quota, "OverLimit", "done"],
    function* ({ code, create, receive, remove, send }) {
      const url = yield* create()
      yield* send(url, "a", "b", "c", "d")
      const held = yield* receive(url)
      const refused = yield* code(receive(url))
      yield* remove(url, held[0]?.ReceiptHandle)
      return [held.length, refused, yield* code(receive(url))]
    }
  ),
  row("of a FIFO queue it is empty", `${guide}/quotas-messages.html`, [quota, 0], function* ({ fifo, receive, send }) {
    const url = yield* fifo()
    yield* send(url, ...grouped("1a", "2a", "3a", "4a"))
    return [(yield* receive(url)).length, (yield* receive(url)).length]
  }),
  row("and a long poll is", `${guide}/quotas-messages.html`, 0, function* ({ create, receive, send }) {
    const url = yield* create()
    yield* send(url, "a", "b", "c", "d")
    yield* receive(url)
    return (yield* receive(url, { WaitTimeSeconds: 1 })).length
  })
]
