/**
 * The messages of one queue: which are visible, in which order, and until when the others are hidden.
 *
 * | rule | source |
 * | --- | --- |
 * | a hidden message is visible again when its time is over; on a standard queue after those that waited | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html |
 * | a message leaves the queue when its retention period, counted from its send, is over, also in flight | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-basic-architecture.html |
 * | a receive has all messages of a FIFO group that there are, in order, then those of the next group | test_fifo_receive_message_group_id_ordering of LocalStack |
 * | no message of a FIFO group is received while one in front of it is hidden | test_fifo_receive_message_visibility_timeout_shared_in_group of LocalStack |
 * | a message that goes back is received again though later ones of its group are in flight | test_fifo_message_group_visibility_after_terminate_visibility_timeout of LocalStack |
 */
import type { Host } from "../Host.ts"
import type { Message } from "./Message.ts"

/** The messages of one queue. */
export interface Store {
  /** Adds a message that is visible after `delay` milliseconds, and leaves the queue `kept` milliseconds from now. */
  readonly add: (message: Message, delay: number, kept: number) => void
  /** The next visible messages, at most `count`. They stay visible. */
  readonly next: (count: number) => ReadonlyArray<Message>
  /** Hides a message for this many milliseconds. */
  readonly hide: (message: Message, millis: number) => void
  readonly remove: (message: Message) => void
  readonly all: () => ReadonlyArray<Message>
  readonly inFlight: () => ReadonlyArray<Message>
  readonly counts: () => { readonly ready: number; readonly inFlight: number; readonly delayed: number }
}

/** Calls back when a message is visible, and when its retention is over. */
interface On {
  readonly visible: (message: Message, from: "delayed" | "inFlight") => void
  readonly expired: (message: Message) => void
}

/** Returns visible messages of a FIFO queue: group by group, each in its order, none after a hidden one. */
const inGroups = (ready: Iterable<Message>, hidden: Iterable<Message>): ReadonlyArray<Message> => {
  const barriers = new Map<string | undefined, number>()
  for (const { content, copy } of hidden)
    barriers.set(content.group, Math.min(copy, barriers.get(content.group) ?? Infinity))
  const free = [...ready].filter(({ content, copy }) => copy < (barriers.get(content.group) ?? Infinity))
  const groups = Map.groupBy(
    free.toSorted((one, other) => one.copy - other.copy),
    ({ content }) => content.group
  )
  return [...groups.values()].flat()
}

const firstOf = (ready: Iterable<Message>, count: number): ReadonlyArray<Message> => {
  const found: Array<Message> = []
  for (const message of ready) {
    if (found.length === count) break
    found.push(message)
  }
  return found
}

/** Makes an empty store. */
export const make = ({ after, now }: Host, isFifo: boolean, on: On): Store => {
  const places = { ready: new Set<Message>(), delayed: new Set<Message>(), inFlight: new Set<Message>() }
  const { delayed, inFlight, ready } = places

  const enter = (message: Message, state: keyof typeof places): void => {
    leave(message)
    message.state = state
    places[state].add(message)
  }
  const leave = (message: Message): void => {
    for (const place of Object.values(places)) place.delete(message)
  }

  const until = (message: Message, millis: number, state: "delayed" | "inFlight"): void => {
    message.cancelDue()
    message.due = now() + millis
    enter(message, state)
    const show = (): void => {
      enter(message, "ready")
      on.visible(message, state)
    }
    if (millis > 0) message.cancelDue = after(millis, show)
    else show()
  }

  const remove = (message: Message): void => {
    message.cancelDue()
    message.cancelExpiry()
    leave(message)
    message.state = "gone"
  }

  return {
    add: (message, delay, kept) => {
      message.cancelExpiry = after(kept, () => {
        remove(message)
        on.expired(message)
      })
      until(message, delay, "delayed")
    },
    next: (count) => (isFifo ? inGroups(ready, [...delayed, ...inFlight]).slice(0, count) : firstOf(ready, count)),
    hide: (message, millis) => until(message, millis, "inFlight"),
    remove,
    inFlight: () => [...inFlight],
    all: () => [...ready, ...delayed, ...inFlight],
    counts: () => ({ ready: ready.size, inFlight: inFlight.size, delayed: delayed.size })
  }
}
