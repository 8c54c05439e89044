/**
 * Queues of a simulated server of SQS, and their attributes.
 *
 * | rule | source |
 * | --- | --- |
 * | creating a queue that exists succeeds, unless an attribute differs | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html |
 * | a name is taken for 60 seconds after its queue was deleted | test_create_queue_recently_deleted of LocalStack |
 * | the account in a call counts: a queue of another account is not there | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueUrl.html |
 * | a dead-letter queue exists, is of the same kind, account and region, and allows its source | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html |
 * | new attributes hold after up to 60 seconds, and numbers of messages are up to a minute old: see `Settings` | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html |
 * | a purge removes all messages, those in flight too; the next one is possible after a minute | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_PurgeQueue.html |
 */
import * as Result from "effect/Result"
import * as Api from "./Api.ts"
import { type AwsError, invalidValue, nameExists, named, purgedRecently } from "./AwsError.ts"
import { byArn, type Env, type Queue } from "./Queue.ts"
import * as QueueRules from "./QueueRules.ts"
import * as Store from "./Store.ts"

/** Milliseconds between purges, and until the name of a deleted queue is free. */
const pause = 60_000

/** The ARN of the dead-letter queue that a queue names; empty if it names none. */
const targetOf = (attributes: QueueRules.Attributes): string =>
  String(Api.jsonOf(attributes["RedrivePolicy"])["deadLetterTargetArn"] ?? "")

/** Whether a dead-letter queue allows a source. */
const allows = ({ attributes }: Queue, source: string): boolean => {
  const { redrivePermission, sourceQueueArns } = Api.jsonOf(attributes["RedriveAllowPolicy"])
  if (redrivePermission === "byQueue") return Array.isArray(sourceQueueArns) && sourceQueueArns.includes(source)
  return redrivePermission !== "denyAll"
}

const redriveRefusal = (env: Env, name: string, attributes: QueueRules.Attributes): AwsError | undefined => {
  const target = targetOf(attributes)
  if (target === "") return undefined
  const { account, region } = env.settings
  const invalid = (reason: string) => invalidValue("RedrivePolicy", attributes["RedrivePolicy"], reason)
  const [, , , theirRegion, theirAccount, theirName = ""] = target.split(":")
  if (theirRegion !== region) return invalid("Dead-letter target must be in the same region as the source.")
  if (Api.isFifo(theirName) !== Api.isFifo(name))
    return invalid("Dead-letter queue must be same type of queue as the source.")
  if (theirAccount !== account) return invalid("Dead letter target owner should be same as the source.")
  const queue = byArn(env, target)
  if (queue === undefined) return invalid("Dead letter target does not exist.")
  return allows(queue, arnOf(env, name))
    ? undefined
    : invalid("The RedriveAllowPolicy of the dead-letter queue does not allow this source queue.")
}

const arnOf = ({ settings: { account, region } }: Env, name: string): string =>
  `arn:aws:sqs:${region}:${account}:${name}`

/** Makes a queue without messages. */
const open = (env: Env, name: string, attributes: QueueRules.Attributes): Queue => {
  const { host, listen, settings } = env
  const isFifo = Api.isFifo(name)
  const queue: Queue = {
    name,
    isFifo,
    url: `https://sqs.${settings.region}.amazonaws.com/${settings.account}/${name}`,
    arn: arnOf(env, name),
    store: Store.make(host, isFifo, {
      visible: (message, from) => {
        const { delivery } = message
        if (from === "inFlight") listen({ _tag: "Back", message, queue: name, delivery })
        env.wake(queue)
      },
      expired: (message) => listen({ _tag: "Gone", message, queue: name, why: "expired", delivery: undefined })
    }),
    attributes: QueueRules.initial(attributes, isFifo),
    sent: new Map(),
    attempts: new Map(),
    polls: new Set(),
    purged: Number.NEGATIVE_INFINITY,
    counted: undefined
  }
  return queue
}

const clear = ({ listen }: Env, { name, store }: Queue, why: "purged" | "deleted"): void => {
  for (const message of store.all()) {
    store.remove(message)
    listen({ _tag: "Gone", message, queue: name, why, delivery: undefined })
  }
}

/** The attributes of a queue, with its numbers of messages. */
const described = ({ host, settings }: Env, queue: Queue): QueueRules.Attributes => {
  const { counted } = queue
  const isRecent = counted !== undefined && host.now() - counted.at < settings.countsAge
  const { counts } = isRecent ? counted : (queue.counted = { at: host.now(), counts: queue.store.counts() })
  return {
    ...queue.attributes,
    QueueArn: queue.arn,
    ApproximateNumberOfMessages: String(counts.ready),
    ApproximateNumberOfMessagesNotVisible: String(counts.inFlight),
    ApproximateNumberOfMessagesDelayed: String(counts.delayed)
  }
}

/** Makes the calls about queues. */
export const make = (env: Env) => {
  const { host, queues, settings } = env
  const deleted = new Map<string, number>()
  const isRecent = (time = Number.NEGATIVE_INFINITY): boolean => host.now() - time < pause

  const create = ({ body: { Attributes = {}, QueueName: name = "" } }: Api.Call): Api.Reply => {
    const refused = QueueRules.createRefusal(name, Attributes) ?? redriveRefusal(env, name, Attributes)
    if (refused !== undefined) return Result.fail(refused)
    if (isRecent(deleted.get(name))) return Result.fail(named.QueueDeletedRecently)
    const before = queues.get(name)
    const other = Object.keys(Attributes).find(
      (key) => before !== undefined && before.attributes[key] !== Attributes[key]
    )
    if (other !== undefined) return Result.fail(nameExists(other))
    const queue = before ?? open(env, name, Attributes)
    queues.set(name, queue)
    return Result.succeed({ QueueUrl: queue.url })
  }

  return {
    createQueue: create,
    getQueueUrl: (queue: Queue): Api.Reply => Result.succeed({ QueueUrl: queue.url }),
    getQueueAttributes: (queue: Queue, { body: { AttributeNames = [] } }: Api.Call): Api.Reply => {
      const asked = Object.entries(described(env, queue)).filter(
        ([name]) => AttributeNames.includes("All") || AttributeNames.includes(name)
      )
      return Result.succeed({ Attributes: Object.fromEntries(asked) })
    },
    setQueueAttributes: (queue: Queue, { body: { Attributes = {} } }: Api.Call): Api.Reply => {
      const refused = QueueRules.changeRefusal(Attributes, queue.isFifo) ?? redriveRefusal(env, queue.name, Attributes)
      if (refused !== undefined) return Result.fail(refused)
      const set = (): void => {
        queue.attributes = QueueRules.changed(queue.attributes, Attributes)
      }
      if (settings.attributesTake === 0) set()
      else host.after(settings.attributesTake, set)
      return Result.succeed({})
    },
    purgeQueue: (queue: Queue): Api.Reply => {
      if (isRecent(queue.purged)) return Result.fail(purgedRecently(queue.name))
      queue.purged = host.now()
      clear(env, queue, "purged")
      return Result.succeed({})
    },
    deleteQueue: (queue: Queue): Api.Reply => {
      clear(env, queue, "deleted")
      queues.delete(queue.name)
      deleted.set(queue.name, host.now())
      return Result.succeed({})
    },
    listDeadLetterSourceQueues: (queue: Queue): Api.Reply =>
      Result.succeed({ queueUrls: sourcesOf(env, queue).map(({ url }) => url) })
  }
}

/** The queues whose redrive policy names a queue. */
export const sourcesOf = ({ queues }: Env, { arn }: Queue): ReadonlyArray<Queue> =>
  [...queues.values()].filter(({ attributes }) => targetOf(attributes) === arn)
