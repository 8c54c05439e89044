/** Whether the queues that are there do what a plan needs. Pure. */
import { Delay } from "@requeue/core/adapter-kit"
import * as Backstop from "./maxReceiveCount.ts"
import type { Attributes, Plan, Queue } from "./objects.ts"

/** One attribute of one queue. */
export interface Finding {
  readonly queue: string
  readonly attribute: string
  readonly planned: string | undefined
  readonly found: string | undefined
  /** False when the policy cannot be kept with it: a consumer does not start. */
  readonly isGood: boolean
  readonly detail: string
  readonly remedy: string
}

/** Attributes by the queue's name on SQS; `undefined` for a queue that does not exist. */
export type Found = ReadonlyMap<string, Attributes | undefined>

interface Judgement {
  readonly isGood: boolean
  readonly detail: string
  readonly remedy?: string
}

const good = (detail: string): Judgement => ({ isGood: true, detail })
const bad = (detail: string, remedy: string): Judgement => ({ isGood: false, detail, remedy })

const numberOf = (text: string | undefined): number => Number(text ?? Number.NaN)
const time = (text: string | undefined): string => Delay.format(numberOf(text) * 1000)

/** What is in a `RedrivePolicy`; the SDKs of some languages write its number as text. */
export const redriveOf = ({ RedrivePolicy: text }: Attributes) => {
  const { deadLetterTargetArn, maxReceiveCount } = parse(text)
  return typeof deadLetterTargetArn === "string"
    ? { target: deadLetterTargetArn, maxReceiveCount: Number(maxReceiveCount) }
    : undefined
}

/** What is in a `RedriveAllowPolicy`: by default, every queue of the account may move messages here. */
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

const redrive = ({ redrive: planned }: Queue, found: Attributes, { receives }: Plan): Judgement => {
  const there = redriveOf(found)
  if (there === undefined) {
    return planned === undefined
      ? good("none")
      : good("none: a message that kills its consumer is given up by Requeue alone, when it is received once more")
  }
  if (there.maxReceiveCount <= receives) {
    return bad(
      Backstop.tooFew(there.maxReceiveCount, receives),
      `Raise maxReceiveCount to ${planned?.maxReceiveCount ?? Backstop.highest}, or allow fewer retries`
    )
  }
  if (planned !== undefined && !there.target.endsWith(`:${planned.to.name}`)) {
    return good(`SQS moves what kills its consumer to ${there.target}, Requeue gives up to ${planned.to.name}`)
  }
  return good(`after ${there.maxReceiveCount} receives, ${receives} are needed`)
}

const allow = ({ redriveFrom }: Queue, found: Attributes): Judgement => {
  const { permission, sources } = allowanceOf(found)
  const isOpen = permission === "allowAll" || sources.some((arn) => arn.endsWith(`:${redriveFrom!.name}`))
  return isOpen
    ? good(permission)
    : bad(`${permission} keeps out what SQS moves from ${redriveFrom!.name}`, "Add the queue's ARN to sourceQueueArns")
}

/** SQS keeps the age of a message that it moves: dead letters must be kept for longer than work. FIFO queues start anew. */
const retention = (queue: Queue, found: Attributes, plan: Plan, all: Found): Judgement => {
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

/** `lease`: milliseconds that a delivery stays with us without its visibility being extended. */
const visibility = (found: Attributes, lease: number): Judgement => {
  const given = time(found["VisibilityTimeout"])
  return numberOf(found["VisibilityTimeout"]) * 1000 < lease
    ? bad(
        `a message is delivered again after ${given}, a handler may run for ${Delay.format(lease)}`,
        `Raise VisibilityTimeout to ${Math.ceil(lease / 1000)} or more; AWS asks for six times a function's time-out`
      )
    : good(given)
}

const delay = (found: Attributes): Judgement =>
  numberOf(found["DelaySeconds"] ?? "0") > 0
    ? good(`the queue delays every message, copies of retries too, by ${time(found["DelaySeconds"])}`)
    : good("none")

const judgements = (
  queue: Queue,
  found: Attributes,
  plan: Plan,
  all: Found,
  lease: number
): Record<string, Judgement> => ({
  ...(queue.role === "work"
    ? { VisibilityTimeout: visibility(found, lease), RedrivePolicy: redrive(queue, found, plan) }
    : {}),
  ...(queue.redriveFrom === undefined ? {} : { RedriveAllowPolicy: allow(queue, found) }),
  MessageRetentionPeriod: retention(queue, found, plan, all),
  DelaySeconds: delay(found)
})

/** Every attribute that matters, of every queue of the plan. */
export const verify = (plan: Plan, found: Found, lease = 0): ReadonlyArray<Finding> =>
  plan.queues.flatMap((queue) => {
    const attributes = found.get(queue.name.name)
    if (attributes === undefined) return [missing(queue)]
    return Object.entries(judgements(queue, attributes, plan, found, lease)).map(([attribute, judgement]) => ({
      queue: queue.queue,
      attribute,
      planned: queue.attributes[attribute],
      found: attributes[attribute],
      remedy: "",
      ...judgement
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
  remedy: `Create ${name.name}, or set queues: "create"`
})
