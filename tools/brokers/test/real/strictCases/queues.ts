/** Queues and their attributes. */
import { outcome, type Case } from "./World.ts"

const unknown = (name: string) => ["InvalidAttributeName", `Unknown Attribute ${name}.`]
const onlyFifo = (name: string) => [
  "InvalidAttributeName",
  `You can specify the ${name} only when FifoQueue is set to true.`
]
const notThere = [
  "AWS.SimpleQueueService.NonExistentQueue",
  "The specified queue does not exist or you do not have access to it."
]
const codeOf = (got: unknown): unknown => (Array.isArray(got) ? got[0] : got)

export const cases = {
  deletedQueue: {
    aws: [
      "AWS.SimpleQueueService.QueueDeletedRecently",
      "You must wait 60 seconds after deleting a queue before you can create another with the same name."
    ],
    ask: async ({ create, name, sqs }) => {
      const QueueName = name()
      await sqs.deleteQueue({ QueueUrl: await create({}, QueueName) })
      return outcome(() => create({}, QueueName))
    }
  },
  fifoAttributes: {
    aws: [
      unknown("FifoQueue"),
      unknown("ContentBasedDeduplication"),
      onlyFifo("DeduplicationScope"),
      onlyFifo("FifoThroughputLimit")
    ],
    ask: async ({ create }) => [
      await outcome(() => create({ FifoQueue: "false" })),
      await outcome(() => create({ ContentBasedDeduplication: "false" })),
      await outcome(() => create({ DeduplicationScope: "queue" })),
      await outcome(() => create({ FifoThroughputLimit: "perQueue" }))
    ]
  },
  fifoSuffix: {
    aws: "InvalidParameterValue",
    ask: async ({ create, name }) => codeOf(await outcome(() => create({}, `${name()}.fifo`)))
  },
  typeChanged: {
    aws: [
      unknown("FifoQueue"),
      "done",
      [
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."
      ]
    ],
    ask: async ({ create, fifo, sqs }) => {
      const set = (QueueUrl: string, FifoQueue: string) =>
        outcome(() => sqs.setQueueAttributes({ QueueUrl, Attributes: { FifoQueue } }))
      const [standard, ordered] = [await create(), await fifo("1a")]
      return [await set(standard, "true"), await set(ordered, "true"), await set(ordered, "false")]
    }
  },
  oneEncryption: {
    aws: [
      "InvalidAttributeName",
      "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE."
    ],
    ask: async ({ create, sqs }) => {
      const QueueUrl = await create()
      const Attributes = { KmsMasterKeyId: "key", SqsManagedSseEnabled: "true" }
      return outcome(() => sqs.setQueueAttributes({ QueueUrl, Attributes }))
    }
  },
  encryptionDefaults: {
    aws: [
      { MaximumMessageSize: "1048576", MessageRetentionPeriod: "345600", SqsManagedSseEnabled: "true" },
      { KmsMasterKeyId: "key", KmsDataKeyReusePeriodSeconds: "6000", SqsManagedSseEnabled: "false" },
      { SqsManagedSseEnabled: "false" }
    ],
    ask: async ({ create, sqs }) => {
      const QueueUrl = await create()
      const told = async (pattern: RegExp) => {
        const { Attributes = {} } = await sqs.getQueueAttributes({ QueueUrl, AttributeNames: ["All"] })
        return Object.fromEntries(Object.entries(Attributes).filter(([name]) => pattern.test(name)))
      }
      const set = (KmsMasterKeyId: string, KmsDataKeyReusePeriodSeconds: string) =>
        outcome(() =>
          sqs.setQueueAttributes({ QueueUrl, Attributes: { KmsMasterKeyId, KmsDataKeyReusePeriodSeconds } })
        )
      const first = await told(/Maximum|Retention|Kms|Sse/)
      await set("key", "6000")
      const second = await told(/Kms|Sse/)
      await set("", "300")
      return [first, second, await told(/Kms|Sse/)]
    }
  },
  otherOwner: {
    aws: [notThere, notThere],
    ask: async ({ account, create, name, otherAccount, sqs }) => {
      const QueueName = name()
      const QueueUrl = (await create({}, QueueName)).replace(account, otherAccount)
      return [
        await outcome(() => sqs.getQueueUrl({ QueueName, QueueOwnerAWSAccountId: otherAccount })),
        await outcome(() => sqs.sendMessage({ QueueUrl, MessageBody: "x" }))
      ]
    }
  },
  otherOwnersDeadLetters: {
    aws: ["done", "InvalidParameterValue", "InvalidParameterValue"],
    ask: async ({ account, arn, create, otherAccount, otherRegion, redrive, region }) => {
      const target = arn(await create())
      const set = async (to: string) => codeOf(await outcome(() => create(redrive(to))))
      return [
        await set(target),
        await set(target.replace(account, otherAccount)),
        await set(target.replace(region, otherRegion))
      ]
    }
  },
  redriveAllowPolicy: {
    aws: ["InvalidParameterValue", "done", "InvalidParameterValue"],
    ask: async ({ arn, create, name, redrive }) => {
      const allowed = name()
      const set = async (policy: object, source: string) => {
        const deadLetters = await create({ RedriveAllowPolicy: JSON.stringify(policy) })
        return codeOf(await outcome(() => create(redrive(arn(deadLetters)), source)))
      }
      const byQueue = { redrivePermission: "byQueue", sourceQueueArns: [arn(allowed)] }
      return [
        await set({ redrivePermission: "denyAll" }, name()),
        await set(byQueue, allowed),
        await set(byQueue, name())
      ]
    }
  }
} satisfies Readonly<Record<string, Case>>
