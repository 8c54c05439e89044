/** All that waits in a queue and in its dead-letter queues; `null` where nobody can tell, and `remarks` says why. */
import { type Backlog, Broker, type BrokerError, Delay, RetryPolicy } from "@requeue/core"
import { QueueStatus as Core } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Service } from "./Output.ts"
import * as Table from "./Table.ts"
import type * as Target from "./Target.ts"

export interface QueueStatus {
  readonly queue: string
  /** Whether the broker has no such queue. Its dead letters, and messages that wait for their delay, may be there. */
  readonly missing: boolean
  readonly ready: number | null
  readonly inFlight: number | null
  readonly delayed: number | null
  /** The delayed ones by when they are due; times are in milliseconds. */
  readonly backoff: ReadonlyArray<Backlog.Due> | null
  /** Messages that wait, by dead-letter queue. */
  readonly dead: Readonly<Record<string, number | null>>
  readonly undelivered: number | null
  /** Kept by processes that consume, of which the broker knows nothing. */
  readonly quarantined: null
  /** Milliseconds since the first publish of the message that is ready for longest. */
  readonly oldest: number | null
  readonly consumers: number | null
  /** Whether an operator has paused it. */
  readonly paused: boolean
  /** Why a number is not known, or what else it counts. */
  readonly remarks: Readonly<Partial<Record<Field, string>>>
}

type Field = Backlog.Field | "dead" | "quarantined"

/** The numbers, and why parts of the broker have told none. */
interface Asked {
  readonly status: QueueStatus
  readonly missing: ReadonlyArray<BrokerError.BrokerError>
}

const quarantined = "kept by processes that consume: their health and the metric requeue.consumer.quarantined tell"

/** Asks the broker for a queue's numbers. */
export const of = Effect.fnUntraced(function* (queue: Target.Queue) {
  const broker = yield* Broker.Broker
  const retry = RetryPolicy.from(queue.options.retry ?? {})
  const backlog = yield* Core.of(broker, { queue: queue.name, retry })
  const dead = Object.fromEntries(backlog.dead.map(({ count, queue }) => [queue, count ?? null]))
  const asked: Asked = {
    status: {
      queue: queue.name,
      missing: backlog.isMissing,
      ready: backlog.ready ?? null,
      inFlight: backlog.inFlight ?? null,
      delayed: backlog.delayed ?? null,
      backoff: backlog.backoff ?? null,
      dead,
      undelivered: backlog.undelivered ?? null,
      quarantined: null,
      oldest: backlog.oldest ?? null,
      consumers: backlog.consumers ?? null,
      paused: backlog.isPaused ?? false,
      remarks: {
        ...backlog.remarks,
        ...(Object.values(dead).includes(null)
          ? { dead: backlog.remarks.ready ?? "the broker does not count them" }
          : {}),
        quarantined
      }
    },
    missing: backlog.missing ?? []
  }
  return asked
})

/** The number of dead letters in all queues; `null` where one of them cannot be counted. */
const deadOf = ({ dead }: QueueStatus): number | null =>
  Object.values(dead).reduce((sum: number | null, count) => (sum === null || count === null ? null : sum + count), 0)

/** Times of delays that a cell has room for. */
const room = 4

const showDue = (backoff: QueueStatus["backoff"]): string => {
  if (backoff === null) return "-"
  const first = backoff.slice(0, room).map(({ count, within }) => `${Delay.format(within)}: ${count}`)
  const more = backoff.length - first.length
  return [...first, ...(more > 0 ? [`${more} more`] : [])].join(", ")
}

/** No message has no age. */
const showAge = (millis: number): string => (millis === 0 ? "" : Delay.format(millis))

interface Column {
  readonly field: Field
  readonly title: string
  readonly show: (status: QueueStatus) => string
}

/** A number; `-` where it is unknown, with `*` where a remark says what else it counts. */
const numbered =
  (
    field: Exclude<Field, "backoff">,
    of: (status: QueueStatus) => number | null,
    format: (n: number) => string = String
  ) =>
  (status: QueueStatus): string => {
    const number = of(status)
    return number === null ? "-" : `${format(number)}${status.remarks[field] === undefined ? "" : "*"}`
  }

const columns: ReadonlyArray<Column> = [
  { field: "ready", title: "ready", show: numbered("ready", ({ ready }) => ready) },
  { field: "inFlight", title: "in flight", show: numbered("inFlight", ({ inFlight }) => inFlight) },
  { field: "delayed", title: "delayed", show: numbered("delayed", ({ delayed }) => delayed) },
  { field: "backoff", title: "due within", show: ({ backoff }) => showDue(backoff) },
  { field: "dead", title: "dead", show: numbered("dead", deadOf) },
  { field: "undelivered", title: "undelivered", show: numbered("undelivered", ({ undelivered }) => undelivered) },
  { field: "quarantined", title: "quarantined", show: numbered("quarantined", ({ quarantined }) => quarantined) },
  { field: "oldest", title: "oldest", show: numbered("oldest", ({ oldest }) => oldest, showAge) },
  { field: "consumers", title: "consumers", show: numbered("consumers", ({ consumers }) => consumers) }
]

/** The queue's name, and what must be known of it before its numbers. */
const nameOf = ({ missing, paused, queue }: QueueStatus, paint: Service["paint"]): string =>
  [queue, ...(missing ? [paint("red", "(missing)")] : []), ...(paused ? [paint("yellow", "(paused)")] : [])].join(" ")

/** Fields whose messages are in trouble. */
const alarming: ReadonlySet<Field> = new Set(["dead", "undelivered"])

/** Each remark once. */
const notes = (all: ReadonlyArray<QueueStatus>): ReadonlyArray<string> => [
  ...new Set(
    columns.flatMap(({ field, show, title }) =>
      all.flatMap((status) => {
        const remark = status.remarks[field]
        return remark === undefined ? [] : [`${show(status) === "-" ? "-" : "*"} ${title}: ${remark}`]
      })
    )
  )
]

/** Shows the numbers of queues, and below them what must be known of them. */
export const table = (all: ReadonlyArray<QueueStatus>, paint: Service["paint"]): string =>
  [
    Table.format(
      ["queue", ...columns.map(({ title }) => title)],
      all.map((status) => [
        nameOf(status, paint),
        ...columns.map(({ field, show }) => {
          const text = show(status)
          return alarming.has(field) && !["0", "-"].includes(text) ? paint("red", text) : text
        })
      ])
    ),
    ...notes(all).map((note) => paint("dim", note))
  ].join("\n")

/** Shows a queue's numbers in one line. */
export const line = (status: QueueStatus): string =>
  [
    nameOf(status, (_, text) => text),
    ...columns.flatMap(({ show, title }) => {
      const text = show(status)
      return text === "" ? [] : [`${title}: ${text}`]
    })
  ].join("  ")
