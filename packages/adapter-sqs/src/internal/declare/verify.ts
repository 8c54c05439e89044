/** Compares existing queues with a plan. Pure. */
import { Delay } from "@requeue/core/port"
import * as Limits from "../limits.ts"
import * as Names from "../names.ts"
import * as MaxReceiveCount from "./maxReceiveCount.ts"
import type { Attributes, Plan, Queue } from "./objects.ts"

/** The comparison of one attribute of one queue. */
export interface Finding {
  /** The name that the program uses. */
  readonly queue: string
  readonly attribute: string
  /** The planned value; `undefined` if the plan has it in another form, such as a redrive policy. */
  readonly planned: string | undefined
  readonly found: string | undefined
  readonly isGood: boolean
  /** Whether a consumer starts although the attribute is wrong. Default: it does not start. */
  readonly mayStart?: true | undefined
  readonly detail: string
  /** Empty if nothing is needed. */
  readonly remedy: string
}

/** Attributes by the queue's name on SQS; `undefined` for a queue that does not exist. */
export type Found = ReadonlyMap<string, Attributes | undefined>

interface Verdict {
  readonly isGood: boolean
  readonly mayStart?: true
  readonly detail: string
  readonly remedy?: string
}

const good = (detail: string): Verdict => ({ isGood: true, detail })
const bad = (detail: string, remedy: string): Verdict => ({ isGood: false, detail, remedy })

const numberOf = (text: string | undefined): number => Number(text ?? Number.NaN)
const time = (text: string | undefined): string => Delay.format(numberOf(text) * 1000)

/** Reads a `RedrivePolicy`. The SDKs of some languages write its number as text. */
export const redriveOf = ({ RedrivePolicy: text }: Attributes) => {
  const { deadLetterTargetArn, maxReceiveCount } = parse(text)
  return typeof deadLetterTargetArn === "string"
    ? { target: deadLetterTargetArn, maxReceiveCount: Number(maxReceiveCount) }
    : undefined
}

/** Reads a `RedriveAllowPolicy`. By default, every queue of the account may move messages here. */
export const allowanceOf = ({ RedriveAllowPolicy: text }: Attributes) => {
  const { redrivePermission = "allowAll", sourceQueueArns } = parse(text)
  return {
    permission: String(redrivePermission),
    sources: Array.isArray(sourceQueueArns) ? sourceQueueArns.map(String) : []
  }
}

const parse = (text: string | undefined): Record<string, unknown> => {
  try {
    const json: unknown = JSON.parse(text ?? "{}")
    return typeof json === "object" && json !== null ? { ...json } : {}
  } catch {
    return {}
  }
}

/** Returns how to change the redrive policy of an existing queue, which no option does. */
const change = (name: string, redrive: ReturnType<typeof redriveOf>): string => {
  const { maxReceiveCount = 0, target = "" } = redrive ?? {}
  const value = redrive === undefined ? "" : JSON.stringify({ deadLetterTargetArn: target, maxReceiveCount })
  const what = redrive === undefined ? "Remove the RedrivePolicy of" : `Set maxReceiveCount to ${maxReceiveCount} on`
  const url = `"$(aws sqs get-queue-url --queue-name ${name} --query QueueUrl --output text)"`
  const attributes = JSON.stringify({ RedrivePolicy: value })
  return `${what} the existing queue: aws sqs set-queue-attributes --queue-url ${url} --attributes '${attributes}'`
}

const redrive = ({ name: { fifo, name }, redrive: planned }: Queue, found: Attributes, { receives }: Plan): Verdict => {
  const there = redriveOf(found)
  if (there === undefined) {
    return planned === undefined
      ? good("none")
      : good("none: only Requeue dead-letters a message that kills its consumer, at its next receive")
  }
  if (there.maxReceiveCount <= receives) {
    const most = planned?.maxReceiveCount ?? Limits.maxReceiveCount
    return bad(
      MaxReceiveCount.tooFew(there.maxReceiveCount, receives),
      `${change(name, most > receives ? { ...there, maxReceiveCount: most } : undefined)}${MaxReceiveCount.lower(there.maxReceiveCount, fifo)}`
    )
  }
  if (planned !== undefined && !there.target.endsWith(`:${planned.to.name}`)) {
    return good(`SQS moves what kills its consumer to ${there.target}, Requeue dead-letters to ${planned.to.name}`)
  }
  return good(`after ${there.maxReceiveCount} receives, ${receives} are needed`)
}

const allow = ({ redriveFrom }: Queue, found: Attributes): Verdict => {
  const { permission, sources } = allowanceOf(found)
  const isOpen = permission === "allowAll" || sources.some((arn) => arn.endsWith(`:${redriveFrom!.name}`))
  return isOpen
    ? good(permission)
    : bad(`${permission} keeps out what SQS moves from ${redriveFrom!.name}`, "Add the queue's ARN to sourceQueueArns")
}

/**
 * SQS keeps the age of a message that it moves, except between FIFO queues. So dead letters must be kept at least as
 * long as work.
 */
const retention = (queue: Queue, found: Attributes, plan: Plan, all: Found): Verdict => {
  const kept = time(found["MessageRetentionPeriod"])
  const source = queue.redriveFrom && all.get(queue.redriveFrom.name)
  const least = numberOf(source?.["MessageRetentionPeriod"])
  if (!queue.name.fifo && numberOf(found["MessageRetentionPeriod"]) < least) {
    return bad(
      `dead letters are kept for ${kept}, their queue's messages for ${Delay.format(least * 1000)}: what SQS moves keeps its age`,
      `Raise MessageRetentionPeriod to ${least} or more`
    )
  }
  if (queue.role === "work" && numberOf(found["MessageRetentionPeriod"]) * 1000 <= plan.lasts) {
    return bad(
      `a message is retried for ${Delay.format(plan.lasts)}, SQS deletes it after ${kept}`,
      "Raise MessageRetentionPeriod, or set retry.maxAge below it"
    )
  }
  return good(kept)
}

/** @param lease longest run of a handler without a lease extension, in milliseconds */
const visibility = (found: Attributes, lease: number): Verdict => {
  const given = time(found["VisibilityTimeout"])
  return numberOf(found["VisibilityTimeout"]) * 1000 < lease
    ? bad(
        `a message is delivered again after ${given}, a handler may run for ${Delay.format(lease)}`,
        `Raise VisibilityTimeout to ${Math.ceil(lease / 1000)} or more; AWS asks for six times a function's time-out`
      )
    : good(given)
}

/** The attribute differs from the plan, but consumers can run. */
const wrong = (detail: string, remedy: string): Verdict => ({ isGood: false, mayStart: true, detail, remedy })
const notice = (detail: string, remedy: string): Verdict => ({ isGood: true, detail, remedy })

/** A redrive policy on a dead-letter queue moves letters that are browsed often. */
const lettersRedrive = (found: Attributes, work: Names.Name): Verdict | undefined => {
  const there = redriveOf(found)
  if (there === undefined) return undefined
  const { maxReceiveCount, target } = there
  return target.endsWith(`:${work.name}`)
    ? bad(
        `SQS moves dead letters back to ${work.name} when they were received ${maxReceiveCount} times`,
        "Remove the RedrivePolicy of the dead-letter queue"
      )
    : notice(
        `SQS moves dead letters on to ${target} when they were received ${maxReceiveCount} times, and browsing counts`,
        "Remove the RedrivePolicy of the dead-letter queue"
      )
}

/** Each queue has its own size limit. */
const size = ({ redriveFrom }: Queue, found: Attributes, all: Found): Verdict | undefined => {
  const own = numberOf(found["MaximumMessageSize"])
  const source = numberOf(redriveFrom && all.get(redriveFrom.name)?.["MaximumMessageSize"])
  if (own < source) {
    return wrong(
      `dead letters of more than ${own} bytes are refused, their queue takes ${source}`,
      `Raise MaximumMessageSize to ${source}`
    )
  }
  return own < Limits.size
    ? notice(
        `larger messages than ${own} bytes are refused, SQS takes ${Limits.size}`,
        "Raise MaximumMessageSize if need be"
      )
    : undefined
}

/** Checks the encryption. A server that does not report it has no key either. */
const encryption = ({ attributes: planned }: Queue, found: Attributes): readonly [string, Verdict] | undefined => {
  const { KmsMasterKeyId: key, SqsManagedSseEnabled: managed } = found
  const by = key ?? (managed === "true" ? "sqs" : "none")
  const wanted = planned["KmsMasterKeyId"] ?? (planned["SqsManagedSseEnabled"] === "true" ? "sqs" : "none")
  const isPlain = planned["KmsMasterKeyId"] === undefined
  if (by === wanted || (isPlain && key === undefined && managed === undefined)) return undefined
  // A queue with weaker encryption than planned may hold messages that a key should protect.
  const report = !isPlain || by === "none" ? wrong : notice
  const verdict = report(`encryption is ${by}, ${wanted} was planned`, `Change it, or set encryption: "${by}"`)
  return [isPlain ? "SqsManagedSseEnabled" : "KmsMasterKeyId", verdict]
}

/** Attributes that are reported only if they differ from the plan. */
const noticed = (queue: Queue, found: Attributes, { queues }: Plan, all: Found): Record<string, Verdict> => {
  const work = queues.at(-1)!
  const redrives = queue.role === "work" ? undefined : lettersRedrive(found, work.name)
  const limit = size(queue, found, all)
  const key = encryption(queue, found)
  return {
    ...(redrives && { RedrivePolicy: redrives }),
    ...(limit && { MaximumMessageSize: limit }),
    ...(key && { [key[0]]: key[1] })
  }
}

const delay = (found: Attributes): Verdict =>
  numberOf(found["DelaySeconds"] ?? "0") > 0
    ? good(`the queue delays every message, copies of retries too, by ${time(found["DelaySeconds"])}`)
    : good("none")

const verdictsOf = (
  queue: Queue,
  found: Attributes,
  plan: Plan,
  all: Found,
  lease: number
): Record<string, Verdict> => ({
  ...(queue.role === "work"
    ? { VisibilityTimeout: visibility(found, lease), RedrivePolicy: redrive(queue, found, plan) }
    : {}),
  ...(queue.redriveFrom === undefined ? {} : { RedriveAllowPolicy: allow(queue, found) }),
  MessageRetentionPeriod: retention(queue, found, plan, all),
  DelaySeconds: delay(found),
  ...noticed(queue, found, plan, all)
})

/**
 * Compares every attribute that matters, of every queue of the plan.
 *
 * @param lease longest run of a handler without a lease extension, in milliseconds. Default: 0, since
 *   consumers extend their leases
 */
export const verify = (plan: Plan, found: Found, lease = 0): ReadonlyArray<Finding> =>
  plan.queues.flatMap((queue) => {
    const attributes = found.get(queue.name.name)
    if (attributes === undefined) return [missing(queue)]
    return Object.entries(verdictsOf(queue, attributes, plan, found, lease)).map(([attribute, verdict]) => ({
      queue: queue.queue,
      attribute,
      planned: queue.attributes[attribute],
      found: attributes[attribute],
      remedy: "",
      ...verdict
    }))
  })

const missing = ({ name, queue, role }: Queue): Finding => ({
  queue,
  attribute: "QueueName",
  planned: name.name,
  found: undefined,
  isGood: false,
  detail:
    role === "work"
      ? "the queue does not exist"
      : "the dead-letter queue does not exist: dead letters could not be sent",
  remedy: name.account === undefined ? `Create ${name.name}, or set queues: "create"` : Names.inAccount(name.account)
})
