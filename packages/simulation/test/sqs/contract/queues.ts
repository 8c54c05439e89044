/** Queues and their attributes. */
import * as Effect from "effect/Effect"
import { docs, row, validated, type World } from "./World.ts"

const api = `${docs}/APIReference`
const guide = `${docs}/SQSDeveloperGuide`
const missing = "AWS.SimpleQueueService.NonExistentQueue"

/** Pairs of attributes of a new queue, and the code of the answer. */
const creating = (
  name: string,
  source: string,
  answer: ReadonlyArray<string>,
  all: ReadonlyArray<Record<string, string>>
) =>
  row(name, source, answer, function* ({ code, create, nameOf }) {
    return yield* Effect.forEach(all, (attributes) => code(create(attributes, nameOf(""))))
  })

const naming = (name: string, source: string, answer: ReadonlyArray<string>, suffixes: ReadonlyArray<string>) =>
  row(name, source, answer, function* ({ code, create, nameOf }) {
    return yield* Effect.forEach(suffixes, (suffix) => code(create({}, nameOf(suffix))))
  })

const invalid = "InvalidParameterValue"
const badName = "InvalidAttributeName"
const badValue = "InvalidAttributeValue"

/** Sets a redrive policy with a changed target. */
const redriving = (change: (arn: string) => string, count: unknown = 1) =>
  function* ({ arn, code, create }: World) {
    const deadLetterTargetArn = change(yield* arn(yield* create()))
    return yield* code(create({ RedrivePolicy: JSON.stringify({ deadLetterTargetArn, maxReceiveCount: count }) }))
  }

const allowing = (policy: (source: string) => object) =>
  function* ({ arn, code, create, redrive, set }: World) {
    const source = yield* create()
    const RedriveAllowPolicy = JSON.stringify(policy(yield* arn(source)))
    return yield* code(set(source, yield* redrive(yield* create({ RedriveAllowPolicy }))))
  }

export const rows = [
  row(
    "a queue that does not exist has no URL",
    `${api}/API_GetQueueUrl.html`,
    missing,
    function* ({ ask, client, code, nameOf }) {
      return yield* code(ask(() => client.getQueueUrl({ QueueName: nameOf("") })))
    }
  ),
  row(
    "a queue of another account is not there",
    `${api}/API_GetQueueUrl.html`,
    missing,
    function* ({ ask, client, code, create, nameOf }) {
      const QueueName = nameOf("")
      yield* create({}, QueueName)
      return yield* code(ask(() => client.getQueueUrl({ QueueName, QueueOwnerAWSAccountId: "111111111111" })))
    }
  ),
  row(
    "the account in a queue's URL counts",
    `${api}/API_GetQueueUrl.html`,
    missing,
    function* ({ code, create, send }) {
      return yield* code(send((yield* create()).replace("000000000000", "111111111111"), "x"))
    }
  ),
  row("a queue that exists is created again", `${api}/API_CreateQueue.html`, true, function* ({ create, nameOf }) {
    const name = nameOf("")
    return (yield* create({ DelaySeconds: "1" }, name)) === (yield* create({ DelaySeconds: "1" }, name))
  }),
  row(
    "but not with another value of an attribute",
    `${api}/API_CreateQueue.html`,
    "QueueNameExists",
    function* ({ create, nameOf }) {
      const name = nameOf("")
      yield* create({ DelaySeconds: "1" }, name)
      const refused = yield* Effect.flip(create({ DelaySeconds: "2" }, name))
      return refused instanceof Error ? refused.name.split(".").at(-1) : refused
    }
  ),
  naming(
    "names have letters, digits, hyphens and underscores",
    `${api}/API_CreateQueue.html`,
    ["done", "done", invalid, invalid, invalid],
    ["A", "_-9", ".b", " b", "é"]
  ),
  naming("names have up to 80 characters", `${api}/API_CreateQueue.html`, [invalid], ["x".repeat(81)]),
  naming(
    "only a FIFO queue's name ends with .fifo",
    validated("test_standard_queue_cannot_have_fifo_suffix"),
    [invalid],
    [".fifo"]
  ),
  row(
    "a FIFO queue's name ends with .fifo",
    `${api}/API_CreateQueue.html`,
    invalid,
    function* ({ code, create, nameOf }) {
      return yield* code(create({ FifoQueue: "true" }, nameOf("")))
    }
  ),
  creating(
    "a standard queue takes no attribute of FIFO queues",
    validated("test_create_standard_queue_with_fifo_attribute_raises_error"),
    [badName, badName, badName, badName],
    [
      { FifoQueue: "false" },
      { ContentBasedDeduplication: "false" },
      { DeduplicationScope: "queue" },
      { FifoThroughputLimit: "perQueue" }
    ]
  ),
  creating(
    "attributes have ranges",
    `${api}/API_SetQueueAttributes.html`,
    ["done", badValue, "done", badValue, "done", badValue, badValue, "done", badValue, badValue],
    [
      { VisibilityTimeout: "43200" },
      { VisibilityTimeout: "43201" },
      { DelaySeconds: "900" },
      { DelaySeconds: "901" },
      { MessageRetentionPeriod: "1209600" },
      { MessageRetentionPeriod: "1209601" },
      { MessageRetentionPeriod: "59" },
      { MaximumMessageSize: "1024" },
      { MaximumMessageSize: "1023" },
      { ReceiveMessageWaitTimeSeconds: "soon" }
    ]
  ),
  creating("attributes have names", `${api}/API_SetQueueAttributes.html`, [badName], [{ Colour: "red" }]),
  row(
    "a queue does not change its kind",
    validated("test_set_unsupported_attribute_fifo"),
    [badName, "done", badValue],
    function* ({ code, create, fifo, set }) {
      const [standard, ordered] = [yield* create(), yield* fifo()]
      return yield* Effect.all([
        code(set(standard, { FifoQueue: "true" })),
        code(set(ordered, { FifoQueue: "true" })),
        code(set(ordered, { FifoQueue: "false" }))
      ])
    }
  ),
  row(
    "a key of KMS and the encryption by SQS exclude each other",
    validated("test_sse_kms_and_sqs_are_mutually_exclusive"),
    badName,
    function* ({ code, create, set }) {
      return yield* code(set(yield* create(), { KmsMasterKeyId: "key", SqsManagedSseEnabled: "true" }))
    }
  ),
  row(
    "a new queue is encrypted by SQS; a key ends that, and its end does not bring it back",
    validated("test_set_queue_attributes_default_values"),
    [
      { SqsManagedSseEnabled: "true" },
      { KmsMasterKeyId: "key", KmsDataKeyReusePeriodSeconds: "6000", SqsManagedSseEnabled: "false" },
      { SqsManagedSseEnabled: "false" }
    ],
    function* ({ create, described, set }) {
      const url = yield* create()
      const seen = Effect.map(described(url), (all) =>
        Object.fromEntries(Object.entries(all).filter(([name]) => /Kms|Sse/.test(name)))
      )
      const first = yield* seen
      yield* set(url, { KmsMasterKeyId: "key", KmsDataKeyReusePeriodSeconds: "6000" })
      const second = yield* seen
      yield* set(url, { KmsMasterKeyId: "", KmsDataKeyReusePeriodSeconds: "300" })
      return [first, second, yield* seen]
    }
  ),
  row(
    "a new queue has AWS's defaults",
    `${api}/API_CreateQueue.html`,
    ["30", "0", "0", "1048576", "345600", "0"],
    function* ({ create, described }) {
      const all = yield* described(yield* create())
      return [
        all["VisibilityTimeout"],
        all["DelaySeconds"],
        all["ReceiveMessageWaitTimeSeconds"],
        all["MaximumMessageSize"],
        all["MessageRetentionPeriod"],
        all["ApproximateNumberOfMessages"]
      ]
    }
  ),
  row(
    "attributes are returned that a call names, and no others",
    `${api}/API_GetQueueAttributes.html`,
    ["DelaySeconds", "VisibilityTimeout"],
    function* ({ create, described }) {
      return Object.keys(yield* described(yield* create(), "VisibilityTimeout", "DelaySeconds")).toSorted()
    }
  ),
  row("an ARN has region, account and name", `${api}/API_GetQueueAttributes.html`, true, function* ({ arn, create }) {
    const url = yield* create()
    return (yield* arn(url)) === `arn:aws:sqs:eu-west-1:000000000000:${url.split("/").at(-1)}`
  }),
  row("attributes change", `${api}/API_SetQueueAttributes.html`, ["5", "0"], function* ({ create, described, set }) {
    const url = yield* create()
    yield* set(url, { VisibilityTimeout: "5" })
    const all = yield* described(url)
    return [all["VisibilityTimeout"], all["DelaySeconds"]]
  }),
  row(
    "a redrive policy needs a target that exists",
    `${guide}/sqs-dead-letter-queues.html`,
    invalid,
    redriving((arn) => `${arn}absent`)
  ),
  row(
    "in its account",
    `${guide}/sqs-dead-letter-queues.html`,
    invalid,
    redriving((arn) => arn.replace("000000000000", "111111111111"))
  ),
  row(
    "in its region",
    `${guide}/sqs-dead-letter-queues.html`,
    invalid,
    redriving((arn) => arn.replace("eu-west-1", "us-east-1"))
  ),
  row(
    "after 1 receive at least",
    `${api}/API_SetQueueAttributes.html`,
    invalid,
    redriving((arn) => arn, 0)
  ),
  row("after 1,000 at most", `${api}/API_SetQueueAttributes.html`, ["done", invalid], function* (world) {
    return [yield* redriving((arn) => arn, 1000)(world), yield* redriving((arn) => arn, 1001)(world)]
  }),
  row(
    "a number as text is good",
    `${api}/API_SetQueueAttributes.html`,
    "done",
    redriving((arn) => arn, "5")
  ),
  row("a redrive policy needs a target", `${api}/API_SetQueueAttributes.html`, invalid, function* ({ code, create }) {
    return yield* code(create({ RedrivePolicy: JSON.stringify({ maxReceiveCount: 1 }) }))
  }),
  row(
    "the dead-letter queue of a FIFO queue is a FIFO queue",
    `${guide}/sqs-dead-letter-queues.html`,
    [invalid, "done"],
    function* ({ code, create, fifo, redrive, set }) {
      const ordered = yield* fifo()
      return [
        yield* code(set(ordered, yield* redrive(yield* create()))),
        yield* code(set(ordered, yield* redrive(yield* fifo())))
      ]
    }
  ),
  row(
    "an empty redrive policy removes it",
    `${api}/API_SetQueueAttributes.html`,
    [true, false],
    function* ({ create, described, redrive, set }) {
      const url = yield* create(yield* redrive(yield* create()))
      const has = Effect.map(described(url), (all) => (all["RedrivePolicy"] ?? "") !== "")
      const before = yield* has
      yield* set(url, { RedrivePolicy: "" })
      return [before, yield* has]
    }
  ),
  row(
    "a dead-letter queue can deny all sources",
    `${api}/API_SetQueueAttributes.html`,
    invalid,
    allowing(() => ({ redrivePermission: "denyAll" }))
  ),
  row("or allow some", `${api}/API_SetQueueAttributes.html`, ["done", invalid], function* (world) {
    const named = (queue: (source: string) => string) =>
      allowing((source) => ({ redrivePermission: "byQueue", sourceQueueArns: [queue(source)] }))(world)
    return [yield* named((source) => source), yield* named((source) => `${source}other`)]
  }),
  row(
    "the sources of a dead-letter queue are listed",
    `${api}/API_ListDeadLetterSourceQueues.html`,
    [true, 0],
    function* ({ ask, client, given }) {
      const [queue, deadLetters] = yield* given()
      const listed = (QueueUrl: string) =>
        Effect.map(
          ask(() => client.listDeadLetterSourceQueues({ QueueUrl })),
          ({ queueUrls = [] }) => queueUrls
        )
      return [(yield* listed(deadLetters)).join() === queue, (yield* listed(queue)).length]
    }
  ),
  row(
    "a purge removes messages, and those in flight too",
    `${api}/API_PurgeQueue.html`,
    [["0", "0", "0"], "AWS.SimpleQueueService.PurgeQueueInProgress"],
    function* ({ ask, client, code, counts, create, receive, send }) {
      const QueueUrl = yield* create()
      yield* send(QueueUrl, "a", "b", { MessageBody: "c", DelaySeconds: 100 })
      yield* receive(QueueUrl, { MaxNumberOfMessages: 1 })
      yield* ask(() => client.purgeQueue({ QueueUrl }))
      return [yield* counts(QueueUrl), yield* code(ask(() => client.purgeQueue({ QueueUrl })))]
    }
  ),
  row(
    "a deleted queue is not there, nor are its messages",
    `${api}/API_DeleteQueue.html`,
    [missing, missing, missing],
    function* ({ code, counts, create, deleteQueue, receive, send }) {
      const url = yield* create()
      yield* send(url, "a")
      yield* deleteQueue(url)
      return [yield* code(send(url, "b")), yield* code(receive(url)), yield* code(counts(url))]
    }
  )
]
