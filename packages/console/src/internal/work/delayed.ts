/** Delayed messages: browses of them, and their purge as a job. */
import { type Message } from "@requeue/core"
import { ErrorPattern } from "@requeue/core/port"
import { type DeadLetters, DelayedMessages } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import type { Queue } from "../../BrokerSource.ts"
import type { Place } from "../paths.ts"
import * as CauseId from "./causeId.ts"
import type { Connection, Trouble } from "./connections.ts"
import * as Deadline from "./deadline.ts"
import type { Work } from "./job.ts"
import type { Selection } from "./selection.ts"

/** A delayed message without its body. Times are in milliseconds since the epoch; `undefined` if they are unknown. */
export interface Waiting {
  readonly id: string
  readonly headers: Message.Headers
  readonly due: number | undefined
  readonly publishedAt: number | undefined
  /** The number of the message's next attempt. */
  readonly attempt: number
  /** The error of the last attempt; `undefined` before the first attempt. */
  readonly error: string | undefined
}

/** The messages whose last attempts failed with the same error. */
export interface Group extends DeadLetters.Cause {
  readonly count: number
  /** When the first of these messages is due. */
  readonly due: number | undefined
  /** The error of one of these messages before redaction; `undefined` if they have no error. */
  readonly message: string | undefined
}

/** A browse of the delayed messages of a queue. */
export interface Found extends DelayedMessages.Browsed {
  /** The messages that are due first. */
  readonly messages: ReadonlyArray<Waiting>
  /** The errors of the last attempts, the most frequent first. */
  readonly groups: ReadonlyArray<Group>
  /** The number of messages with other errors. */
  readonly other: number
}

/** Limits: messages and errors on a page, queues whose errors are remembered, and characters of such an error. */
const most = { messages: 100, groups: 50, queues: 50, error: 1000 }

/** Milliseconds until a browse times out. */
const timeout = 30_000

const errorOf = ({ history }: Pick<DelayedMessages.DelayedMessage, "history">): string | undefined =>
  history.at(-1)?.error

/** Returns the pattern of a message's last error; empty for a message without an error. */
const causeOf = (message: Pick<DelayedMessages.DelayedMessage, "history">): DeadLetters.Cause => ({
  queue: undefined,
  reason: undefined,
  error: undefined,
  pattern: ErrorPattern.of(errorOf(message) ?? "")
})

const waiting = (message: DelayedMessages.DelayedMessage): Waiting => ({
  id: message.id,
  headers: message.headers,
  due: message.due,
  publishedAt: message.firstPublished,
  attempt: message.attempts,
  error: errorOf(message)
})

/** Counts messages by their errors. */
const counter = () => {
  const all = new Map<string, Group>()
  let other = 0
  const add = (message: DelayedMessages.DelayedMessage): void => {
    const cause = causeOf(message)
    const name = cause.pattern ?? ""
    const group = all.get(name)
    if (group === undefined && all.size >= most.groups) return void other++
    const due = group?.due === undefined || (message.due ?? group.due) < group.due ? message.due : group.due
    const example = group === undefined ? errorOf(message)?.slice(0, most.error) : group.message
    all.set(name, { ...cause, count: (group?.count ?? 0) + 1, due, message: example })
  }
  return { add, groups: () => [...all.values()].toSorted((a, b) => b.count - a.count), other: () => other }
}

/** The errors that the last browse of each queue has found. A purge names one of them by its id. */
export interface Memory {
  readonly of: (place: Place, cause: string) => Group | undefined
  readonly keep: (place: Place, groups: ReadonlyArray<Group>) => void
}

/** Makes an empty memory. */
export const memory = (): Memory => {
  const known = new Map<string, ReadonlyArray<Group>>()
  const keyOf = ({ broker, queue }: Place) => JSON.stringify([broker, queue])
  return {
    of: (place, cause) => known.get(keyOf(place))?.find((each) => CauseId.of(each) === cause),
    keep: (place, groups) => {
      known.delete(keyOf(place))
      known.set(keyOf(place), groups)
      if (known.size > most.queues) known.delete(known.keys().next().value!)
    }
  }
}

/** Browses all delayed messages of a queue. Only one browse runs at a time, because two would each see only a part. */
export const look = (
  connection: Connection,
  { name, retry }: Queue,
  turn: Semaphore.Semaphore
): Effect.Effect<Found, Trouble> => {
  const { add, groups, other } = counter()
  const filter = (message: DelayedMessages.DelayedMessage): boolean => {
    add(message)
    return true
  }
  const listed = connection.use(() =>
    Effect.flatMap(DelayedMessages.make(name, { retry }), ({ list }) => list({ limit: most.messages, filter }))
  )
  return Effect.map(
    Deadline.within(connection.name, timeout)(turn.withPermits(1)(listed)),
    ({ isWhole, browsed, messages }) => ({
      messages: messages.map(waiting),
      groups: groups(),
      other: other(),
      browsed,
      isWhole
    })
  )
}

/** The value of a form field for messages with any error. */
export const all = "all"

/** Returns a selection: the messages with one error, or all. */
export const selection = (cause: string | undefined, title: string): Selection => ({
  cause,
  letter: undefined,
  search: {},
  filter: undefined,
  title,
  isMeant: undefined
})

/** Removes delayed messages for good. */
export const purge = (connection: Connection, { name, retry }: Queue, selection: Selection): Work => {
  const { cause, title } = selection
  const isMeant = (message: DelayedMessages.DelayedMessage) => CauseId.of(causeOf(message)) === cause
  return {
    kind: "purge-delayed",
    connection,
    queue: name,
    selection,
    options: { messages: title },
    run: ({ signal, tell }) =>
      connection.use(() =>
        Effect.flatMap(DelayedMessages.make(name, { retry }), (delayed) =>
          Effect.map(
            delayed.purge(cause === undefined ? { all: true, signal } : { filter: isMeant, signal }),
            ({ isWhole, browsed, removed }) =>
              tell({
                purged: {
                  removed,
                  left: isWhole ? browsed - removed : undefined,
                  held: 0,
                  stoppedBy: signal.aborted && !isWhole ? "abort" : undefined
                }
              })
          )
        )
      )
  }
}
