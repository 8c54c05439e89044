/**
 * How often a message was received before SQS moved it to this queue, where its receive count continues. SQS moves a
 * message when the source's `maxReceiveCount` is used up, so the source's redrive policy has the number. If the policy
 * cannot be read, the count at this process's first delivery of the message is used instead.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
 */
import { BoundedMap } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Client, Message } from "../client.ts"
import { redriveOf } from "../declare/verify.ts"
import { receives } from "./receipt.ts"

/** Milliseconds for which the policy of a source is cached. */
const freshness = 300_000

/** Timeout for a source in milliseconds: messages wait under their leases meanwhile. */
const timeout = 2000

/** Number of messages whose first delivery is remembered. */
const sightLimit = 10_000

/** The receives of a message in other queues. */
interface Before {
  readonly count: number
  /** Whether other processes use the same number, because it is the source's. */
  readonly isShared: boolean
}

/** The sources of the messages of one queue. */
export interface Sources {
  /** Whether the sources of these messages are known. */
  readonly knows: (messages: ReadonlyArray<Message>) => boolean
  /** Asks the unknown sources of these messages. Never fails. */
  readonly learn: (messages: ReadonlyArray<Message>) => Effect.Effect<void>
  readonly before: (message: Message) => Before
}

const sourceOf = ({ Attributes }: Message): string | undefined => Attributes?.DeadLetterQueueSourceArn

const none: Before = { count: 0, isShared: true }

/**
 * Makes unknown sources. `now` is in milliseconds. If a message seems to have more than `maxDeliveries` receives in
 * this queue at its first delivery, it counts as its last: the source's `maxReceiveCount` may have been higher when the
 * message was moved. Default: no limit.
 */
export const make = (
  client: Pick<Client, "getQueueUrl" | "getQueueAttributes">,
  now: () => number,
  maxDeliveries = Number.POSITIVE_INFINITY
): Sources => {
  /** The `maxReceiveCount` of each source, keyed by ARN; `undefined` if it cannot be read. */
  const known = new Map<string, { readonly count: number | undefined; readonly until: number }>()
  const sights = BoundedMap.make<number>(sightLimit)

  const maxReceiveCount = async (arn: string): Promise<number | undefined> => {
    const { QueueUrl } = await client.getQueueUrl({ QueueName: arn.slice(arn.lastIndexOf(":") + 1) })
    const { Attributes = {} } = await client.getQueueAttributes({ QueueUrl, AttributeNames: ["RedrivePolicy"] })
    return redriveOf(Attributes)?.maxReceiveCount
  }

  const ask = (arn: string): Effect.Effect<void> =>
    Effect.tryPromise(() => maxReceiveCount(arn)).pipe(
      Effect.timeout(timeout),
      Effect.catch(() => Effect.undefined),
      Effect.map((count) => void known.set(arn, { count, until: now() + freshness }))
    )

  const firstSight = ({ MessageId = "" }: Message, count: number): number => {
    const seen = sights.get(MessageId) ?? count
    sights.set(MessageId, seen)
    return seen
  }

  const isNew = (arn: string | undefined): boolean =>
    arn !== undefined && (known.get(arn)?.until ?? Number.NEGATIVE_INFINITY) <= now()

  return {
    knows: (messages) => messages.every((message) => !isNew(sourceOf(message))),
    learn: (messages) =>
      Effect.suspend(() => {
        const arns = new Set(messages.flatMap((message) => sourceOf(message) ?? []).filter(isNew))
        return Effect.forEach(arns, ask, { concurrency: "unbounded", discard: true })
      }),
    before: (message) => {
      const arn = sourceOf(message)
      if (arn === undefined) return none
      const most = receives(message) - 1
      const count = known.get(arn)?.count
      if (count === undefined) return { count: firstSight(message, most), isShared: false }
      const told = Math.min(count, most)
      const seen = firstSight(message, Math.max(told, most - maxDeliveries + 1))
      return { count: seen, isShared: seen === told }
    }
  }
}
