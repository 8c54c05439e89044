/** Facts about messages that AWS returns with a receive, and servers for tests do not. */
import type { Message } from "@aws-sdk/client-sqs"
import * as Arn from "./Arn.ts"
import type * as Call from "./Call.ts"

interface Seen {
  /** The queue of its last receive. */
  readonly queue: string
  /** Its receives, as AWS counts them. */
  readonly receives: number
  /** The difference to the count of the server behind. */
  readonly more: number
  /** The queue that SQS moved it from; `undefined` if SQS did not. */
  readonly source: string | undefined
}

export type Messages = ReturnType<typeof make>

export const make = () => {
  const groups = new Map<string, string>()
  const seen = new Map<string, Seen>()
  return {
    /** Records the group of a message that was sent. fauxqs forgets that of a standard queue. */
    sent: (queue: string, group: string | undefined, id: unknown): void => {
      if (typeof id === "string" && group !== undefined && !queue.endsWith(".fifo")) groups.set(id, group)
    },
    /**
     * Completes the attributes of a message that was received from the queue with this ARN. A message that SQS has moved to a
     * dead-letter queue keeps its id, and its count continues. fauxqs counts the move as well.
     */
    received: (arn: string, message: Message): Message => {
      const { Attributes: told = {}, MessageId = "" } = message
      const queue = Arn.parse(arn).name
      const before = seen.get(MessageId)
      const count = Number(told.ApproximateReceiveCount)
      const isMoved = before !== undefined && before.queue !== queue
      const more = isMoved ? before.receives + 1 - count : (before?.more ?? 0)
      const source = isMoved ? Arn.sibling(arn, before.queue) : (before?.source ?? told.DeadLetterQueueSourceArn)
      const group = groups.get(MessageId) ?? told.MessageGroupId
      seen.set(MessageId, { queue, receives: count + more, more, source })
      const Attributes = {
        ...told,
        ApproximateReceiveCount: String(count + more),
        ...(source === undefined ? {} : { DeadLetterQueueSourceArn: source }),
        ...(group === undefined ? {} : { MessageGroupId: group })
      }
      return { ...message, Attributes }
    },
    /** Keeps the attributes that a call requests. */
    asked: ({ AttributeNames = [], MessageSystemAttributeNames = [] }: Call.Body, message: Message): Message => {
      const names = [...AttributeNames, ...MessageSystemAttributeNames]
      const { Attributes = {}, ...rest } = message
      const wanted = Object.entries(Attributes).filter(([name]) => names.includes("All") || names.includes(name))
      return wanted.length === 0 ? rest : { ...rest, Attributes: Object.fromEntries(wanted) }
    }
  }
}
