/**
 * The rules of AWS for redrive policies, which depend on other queues.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
 */
import * as Arn from "./Arn.ts"
import { invalidParameter, named, type AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"
import { jsonOf } from "./queueRules.ts"
import type { Queues } from "./queues.ts"
import type { Ask, Reply } from "./upstream.ts"

/** The ARN of the dead-letter queue that a redrive policy names; empty if it names none. */
const targetOf = (policy: string | undefined): string => String(jsonOf(policy)?.["deadLetterTargetArn"] ?? "")

/**
 * Whether a dead-letter queue allows a queue:
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
 */
const allows = (policy: string | undefined, source: string): boolean => {
  const { redrivePermission = "allowAll", sourceQueueArns = [] } = jsonOf(policy) ?? {}
  if (redrivePermission === "byQueue") return Array.isArray(sourceQueueArns) && sourceQueueArns.includes(source)
  return redrivePermission !== "denyAll"
}

/** Returns why AWS rejects the redrive policy of a call; `undefined` if it does not. */
export const refused = async (
  call: Call.Call,
  ask: Ask,
  queues: Queues,
  region: string
): Promise<AwsError | undefined> => {
  const policy = call.body.Attributes?.["RedrivePolicy"]
  const target = targetOf(policy)
  if (target === "") return undefined
  const invalid = (reason: string): AwsError =>
    invalidParameter(`Value ${policy} for parameter RedrivePolicy is invalid. Reason: ${reason}`)
  const { account, name, region: targetRegion } = Arn.parse(target)
  if (targetRegion !== region) return invalid("Dead-letter target must be in the same region as the source.")
  if (name.endsWith(".fifo") !== Call.isFifo(call)) {
    return invalid("Dead-letter queue must be same type of queue as the source.")
  }
  const url = await queues.urlOf(name, ask)
  if (url === undefined) return invalid("Dead letter target does not exist.")
  if (account !== Arn.accountOf(url)) return invalid("Dead letter target owner should be same as the source.")
  const { RedriveAllowPolicy } = await queues.attributes(name, ask)
  // AWS documents the rejection; the words are ours.
  return allows(RedriveAllowPolicy, Arn.sibling(target, call.queue))
    ? undefined
    : invalid("The RedriveAllowPolicy of the dead-letter queue does not allow this source queue.")
}

/** Lists the URLs of the queues that use this dead-letter queue. */
export const sourcesOf = async (arn: string, ask: Ask, queues: Queues): Promise<ReadonlyArray<string>> => {
  const { body } = await ask("ListQueues", { MaxResults: 1000 })
  const found: Array<string> = []
  const urls = (body["QueueUrls"] ?? []) as ReadonlyArray<string> // as AWS documents it
  for (const url of urls) {
    const { RedrivePolicy } = await queues.attributes(url.split("/").at(-1) ?? "", ask)
    if (targetOf(RedrivePolicy) === arn) found.push(url)
  }
  return found
}

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListDeadLetterSourceQueues.html */
export const list = async ({ queue }: Call.Call, ask: Ask, queues: Queues): Promise<Reply | AwsError> => {
  if ((await queues.urlOf(queue, ask)) === undefined) return named("QueueDoesNotExist")
  const { QueueArn = "" } = await queues.attributes(queue, ask)
  return { status: 200, headers: {}, body: { queueUrls: await sourcesOf(QueueArn, ask, queues) } }
}
