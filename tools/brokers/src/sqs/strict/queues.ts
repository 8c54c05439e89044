/** Queues, with their attributes as AWS returns them. */
import * as Arn from "./Arn.ts"
import * as Attributes from "./attributes.ts"
import { named, type AwsError } from "./AwsError.ts"
import type * as Call from "./Call.ts"
import type { Recent } from "./recent.ts"
import type { Ask, Reply } from "./upstream.ts"

export type Queues = ReturnType<typeof make>

const attributesOf = ({ body }: Reply) => (body["Attributes"] ?? {}) as Attributes.Attributes // as AWS documents it

export const make = (recent: Recent) => {
  /** Attributes that were set through the proxy. */
  const set = new Map<string, Attributes.Attributes>()
  /** Attributes that rules have requested. */
  const known = new Map<string, Attributes.Attributes>()
  /** The account of the server behind, from the first of its queues. */
  let account: string | undefined

  const told = (queue: string, server: Attributes.Attributes): Attributes.Attributes =>
    Attributes.told(server, set.get(queue) ?? {}, queue.endsWith(".fifo"))

  /** Returns the URL of a queue in the server behind; `undefined` if there is no such queue. */
  const urlOf = async (QueueName: string, ask: Ask): Promise<string | undefined> => {
    const { body, status } = await ask("GetQueueUrl", { QueueName })
    if (status !== 200) return undefined
    const url = String(body["QueueUrl"])
    account = Arn.accountOf(url)
    return url
  }

  const serverAttributes = async (QueueUrl: string, ask: Ask): Promise<Attributes.Attributes> =>
    attributesOf(await ask("GetQueueAttributes", { QueueUrl, AttributeNames: ["All"] }))

  const change = async (call: Call.Call, ask: Ask): Promise<Reply> => {
    const { Attributes: attributes = {} } = call.body
    const got = await ask(call.action, { ...call.body, Attributes: Attributes.passed(attributes) })
    if (got.status === 200) set.set(call.queue, Attributes.changed(set.get(call.queue) ?? {}, attributes))
    known.delete(call.queue)
    return got
  }

  return {
    urlOf,
    /** Returns the attributes of a queue, with earlier numbers; those of a missing queue are defaults. */
    attributes: async (queue: string, ask: Ask): Promise<Attributes.Attributes> => {
      const before = known.get(queue)
      if (before !== undefined) return before
      const url = await urlOf(queue, ask)
      if (url === undefined) return told(queue, {})
      const found = told(queue, await serverAttributes(url, ask))
      known.set(queue, found)
      return found
    },
    /** Returns the number of waiting messages. */
    waiting: async (url: string, ask: Ask): Promise<number> =>
      Number((await serverAttributes(url, ask))["ApproximateNumberOfMessages"]),
    /** Returns why AWS rejects the account that a call names; `undefined` if it does not. */
    refused: async ({ body, queue }: Call.Call, ask: Ask): Promise<AwsError | undefined> => {
      const { QueueOwnerAWSAccountId, QueueUrl } = body
      const owner = QueueOwnerAWSAccountId ?? (QueueUrl === undefined ? undefined : Arn.accountOf(QueueUrl))
      if (owner !== undefined && account === undefined) await urlOf(queue, ask)
      if (owner === undefined || account === undefined || owner === account) return undefined
      const message = "The specified queue does not exist or you do not have access to it."
      return { ...named("QueueDoesNotExist"), message }
    },
    create: async (call: Call.Call, ask: Ask): Promise<Reply> => {
      if ((await urlOf(call.queue, ask)) === undefined) set.delete(call.queue)
      return change(call, ask)
    },
    change,
    describe: async ({ body, queue }: Call.Call, ask: Ask): Promise<Reply> => {
      const got = await ask("GetQueueAttributes", { ...body, AttributeNames: ["All"] })
      if (got.status !== 200) return got
      const found = Attributes.asked(told(queue, attributesOf(got)), body.AttributeNames ?? [])
      return { ...got, body: { Attributes: found } }
    },
    remove: async ({ body, queue }: Call.Call, ask: Ask): Promise<Reply> => {
      const got = await ask("DeleteQueue", body)
      if (got.status !== 200) return got
      recent.deleted(queue)
      known.delete(queue)
      set.delete(queue)
      return got
    }
  }
}
