/** What the proxy knows of queues: their attributes as AWS tells them, and what was deleted and purged of late. */
import * as Arn from "./Arn.ts"
import * as Attributes from "./attributes.ts"
import { named, type AwsError } from "./AwsError.ts"
import type * as Call from "./Call.ts"
import type { Ask, Reply } from "./upstream.ts"

const pause = 60_000

export type Queues = ReturnType<typeof make>

const attributesOf = ({ body }: Reply) => (body["Attributes"] ?? {}) as Attributes.Attributes // as AWS documents it

export const make = (now: () => number) => {
  /** Attributes that were set through the proxy. */
  const set = new Map<string, Attributes.Attributes>()
  /** Attributes that rules have asked for. */
  const known = new Map<string, Attributes.Attributes>()
  const purged = new Map<string, number>()
  const deleted = new Map<string, number>()
  /** The account of the server behind, from the first of its queues. */
  let account: string | undefined
  const isRecent = (time = -Infinity): boolean => now() - time < pause

  const told = (queue: string, reply: Reply): Attributes.Attributes =>
    Attributes.told(attributesOf(reply), set.get(queue) ?? {}, queue.endsWith(".fifo"))

  /** The URL of a queue in the server behind; `undefined` where there is no such queue. */
  const urlOf = async (QueueName: string, ask: Ask): Promise<string | undefined> => {
    const { body, status } = await ask("GetQueueUrl", { QueueName })
    if (status !== 200) return undefined
    const url = String(body["QueueUrl"])
    account = Arn.accountOf(url)
    return url
  }

  const change = async (call: Call.Call, ask: Ask): Promise<Reply> => {
    const { Attributes: attributes = {} } = call.body
    const got = await ask(call.action, { ...call.body, Attributes: Attributes.passed(attributes) })
    if (got.status === 200) set.set(call.queue, Attributes.changed(set.get(call.queue) ?? {}, attributes))
    known.delete(call.queue)
    return got
  }

  return {
    urlOf,
    /** Answers the attributes of a queue, without its present numbers; those of a queue that is not there are defaults. */
    attributes: async (queue: string, ask: Ask): Promise<Attributes.Attributes> => {
      const before = known.get(queue)
      if (before !== undefined) return before
      const QueueUrl = await urlOf(queue, ask)
      if (QueueUrl === undefined) return told(queue, { status: 400, headers: {}, body: {} })
      const found = told(queue, await ask("GetQueueAttributes", { QueueUrl, AttributeNames: ["All"] }))
      known.set(queue, found)
      return found
    },
    /** Answers the number of messages that wait. */
    waiting: async (QueueUrl: string, ask: Ask): Promise<number> => {
      const names = ["ApproximateNumberOfMessages"]
      const found = attributesOf(await ask("GetQueueAttributes", { QueueUrl, AttributeNames: names }))
      return Number(found["ApproximateNumberOfMessages"])
    },
    refused: async ({ action, body, queue }: Call.Call, ask: Ask): Promise<AwsError | undefined> => {
      if (action === "CreateQueue") return isRecent(deleted.get(queue)) ? named("QueueDeletedRecently") : undefined
      const { QueueOwnerAWSAccountId, QueueUrl } = body
      const owner = QueueOwnerAWSAccountId ?? (QueueUrl === undefined ? undefined : Arn.accountOf(QueueUrl))
      if (owner !== undefined && account === undefined) await urlOf(queue, ask)
      if (owner !== undefined && account !== undefined && owner !== account) {
        const message = "The specified queue does not exist or you do not have access to it."
        return { ...named("QueueDoesNotExist"), message }
      }
      // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_PurgeQueue.html
      if (action !== "PurgeQueue") return undefined
      if (isRecent(purged.get(queue))) {
        const message = `Only one PurgeQueue operation on ${queue} is allowed every 60 seconds.`
        return { ...named("PurgeQueueInProgress"), message }
      }
      purged.set(queue, now())
      return undefined
    },
    create: async (call: Call.Call, ask: Ask): Promise<Reply | AwsError> => {
      if ((await urlOf(call.queue, ask)) === undefined) set.delete(call.queue)
      return change(call, ask)
    },
    change,
    describe: async ({ body, queue }: Call.Call, ask: Ask): Promise<Reply> => {
      const got = await ask("GetQueueAttributes", { ...body, AttributeNames: ["All"] })
      if (got.status !== 200) return got
      return { ...got, body: { Attributes: Attributes.asked(told(queue, got), body.AttributeNames ?? []) } }
    },
    remove: async ({ body, queue }: Call.Call, ask: Ask): Promise<Reply> => {
      const got = await ask("DeleteQueue", body)
      if (got.status !== 200) return got
      deleted.set(queue, now())
      known.delete(queue)
      set.delete(queue)
      return got
    }
  }
}
