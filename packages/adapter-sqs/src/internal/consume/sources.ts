/**
 * How often a message was received before SQS moved it here: in a dead-letter queue its count goes on. SQS moves it when
 * the source's `maxReceiveCount` is used up, so the source's redrive policy tells. Where that may not be read, the first
 * sight of a message by this process stands in for it.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
 */
import { BoundedMap } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Client, Message } from "../client.ts"
import { redriveOf } from "../declare/verify.ts"
import { receives } from "./receipt.ts"

/** Milliseconds for which what a source was seen to be is used. */
const freshness = 300_000

/** Milliseconds that a source may take to answer, while messages wait under their leases. */
const timeout = 2000

/** Messages whose first sight is remembered. */
const sightLimit = 10_000

/** The receives of a message that are not this queue's. */
interface Before {
  readonly count: number
  /** Whether other processes count the same: they do where the source tells. */
  readonly isShared: boolean
}

/** The sources of the messages of one queue. */
export interface Sources {
  /** Whether there is nothing to learn for these messages. */
  readonly knows: (messages: ReadonlyArray<Message>) => boolean
  /** Asks the sources of these messages that are not known. It never fails. */
  readonly learn: (messages: ReadonlyArray<Message>) => Effect.Effect<void>
  readonly before: (message: Message) => Before
}

const sourceOf = ({ Attributes }: Message): string | undefined => Attributes?.DeadLetterQueueSourceArn

const none: Before = { count: 0, isShared: true }

/**
 * Nothing is known yet. `now` is in milliseconds. A message that seems to have had more than `maxDeliveries` of its own when
 * it is first seen has the last of them: the source's `maxReceiveCount` may have been higher when it was moved. Default: no
 * limit.
 */
export const make = (
  client: Pick<Client, "getQueueUrl" | "getQueueAttributes">,
  now: () => number,
  maxDeliveries = Number.POSITIVE_INFINITY
): Sources => {
  /** By the source's ARN, its `maxReceiveCount`; `undefined` where it does not tell. */
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
