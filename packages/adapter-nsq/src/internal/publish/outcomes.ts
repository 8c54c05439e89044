/** The outcome of each message of one call, over all attempts and nsqd. */
import { BrokerError, Delay } from "@requeue/core/port"
import type { PublishResult } from "./publisher.ts"
import type { Item } from "./toPublication.ts"

export interface Outcomes {
  /** Records that messages are being written. Until nsqd answers, it may have them. */
  readonly written: (items: ReadonlyArray<Item>) => void
  /** Records the answer of an nsqd to a message. */
  readonly answered: (item: Item, result: PublishResult) => void
  /** Returns the error of a call that failed with `error`, with the outcome of each message. */
  readonly errorOf: (items: ReadonlyArray<Item>, error: BrokerError.BrokerError) => BrokerError.BrokerError
}

const withReason = (
  { operation, queue, remedy }: BrokerError.BrokerError,
  reason: BrokerError.Reason,
  detail: string
): BrokerError.BrokerError => new BrokerError.BrokerError({ broker: "nsq", operation, queue, reason, detail, remedy })

/** Makes the outcomes of messages that `count` nsqd must store. `timeout` limits a publish, in milliseconds. */
export const make = (count: number, timeout: number): Outcomes => {
  const unanswered = new Set<Item>()
  const copies = new Map<Item, number>()
  const errors = new Map<Item, BrokerError.BrokerError>()

  /** Returns the error of a message that was not written. */
  const unwritten = (error: BrokerError.BrokerError): BrokerError.BrokerError => {
    if (!BrokerError.isDoubtful(error)) return error
    const detail =
      error.reason === "Timeout"
        ? `the message was not written to an nsqd within ${Delay.format(timeout)}`
        : `the message was not written, because a message before it was lost: ${error.detail}`
    return withReason(error, "ConnectionFailed", detail)
  }

  const own = (item: Item, error: BrokerError.BrokerError): BrokerError.BrokerError | undefined => {
    const stored = copies.get(item) ?? 0
    if (stored >= count) return undefined
    const told = errors.get(item)
    if (told !== undefined && BrokerError.isDoubtful(told)) return told
    if (unanswered.has(item)) return withReason(error, "Timeout", `no answer within ${Delay.format(timeout)}`)
    const last = told ?? unwritten(error)
    return stored === 0 ? last : withReason(last, "ConnectionLost", `${last.detail}; another nsqd has the message`)
  }

  return {
    written: (items) => {
      for (const item of items) unanswered.add(item)
    },
    answered: (item, result) => {
      unanswered.delete(item)
      if (result === "Stored") copies.set(item, (copies.get(item) ?? 0) + 1)
      else if (result !== "Unread") errors.set(item, BrokerError.ofRepetition(errors.get(item), result)!)
    },
    errorOf: (items, error) => BrokerError.ofBatch(items.map((item) => own(item, error))) ?? error
  }
}
