/** The status of queues and of their dead-letter queues, as a table, as lines and as JSON. */
import { Broker, Delay } from "@requeue/core"
import { QueueStatus as Core } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { requestOf } from "./Operating.ts"
import type { Service } from "./Output.ts"
import * as Table from "./Table.ts"
import type * as Target from "./Target.ts"

/** The status of a queue that a command acts on. */
export interface QueueStatus extends Core.QueueStatus {
  readonly queue: string
}

/** Asks the broker for a queue's numbers. */
export const of = (queue: Target.Queue) =>
  Effect.flatMap(Broker.Broker, (broker) =>
    Effect.map(Core.of(broker, requestOf(queue)), (status): QueueStatus => ({ queue: queue.name, ...status }))
  )

/**
 * Returns the numbers for JSON. An unknown number is `null`, and `remarks` has the reason. Times are in milliseconds.
 */
export const toJson = (status: QueueStatus) => ({
  queue: status.queue,
  missing: status.isMissing,
  ready: status.ready ?? null,
  inFlight: status.inFlight ?? null,
  delayed: status.delayed ?? null,
  ...(status.blocked === undefined ? {} : { blocked: status.blocked }),
  backoff: status.backoff ?? null,
  dead: Object.fromEntries(
    status.dead.map(({ count, isMissing, queue }) => [queue, isMissing ? null : (count ?? null)])
  ),
  undelivered: status.undelivered ?? null,
  quarantined: null,
  oldest: status.oldest ?? null,
  consumers: status.consumers ?? null,
  paused: status.isPaused ?? false,
  remarks: remarksOf(status)
})

/** Returns the remarks, and names the dead-letter queues that are missing. */
const remarksOf = (status: QueueStatus): ReturnType<typeof Core.remarksOf> => {
  const missing = status.dead.flatMap(({ isMissing, queue }) => (isMissing ? [queue] : []))
  const remarks = Core.remarksOf(status)
  return missing.length === 0 ? remarks : { ...remarks, dead: `the broker does not have ${missing.join(", ")}` }
}

/** The largest number of due times in a cell. */
const room = 4

const showDue = (backoff: QueueStatus["backoff"]): string => {
  if (backoff === undefined) return "-"
  const first = backoff.slice(0, room).map(({ count, within }) => `${Delay.format(within)}: ${count}`)
  const more = backoff.length - first.length
  return [...first, ...(more > 0 ? [`${more} more`] : [])].join(", ")
}

/** Formats an age; the text is empty for 0, because a queue without messages has no age. */
const showAge = (millis: number): string => (millis === 0 ? "" : Delay.format(millis))

interface Column {
  readonly field: Core.Field
  readonly title: string
  readonly show: (status: QueueStatus) => string
}

/** Formats a number; `-` if it is unknown. `*` marks a number that has a remark. */
const numbered =
  (
    field: Exclude<Core.Field, "backoff">,
    of: (status: QueueStatus) => number | undefined,
    format: (n: number) => string = String
  ) =>
  (status: QueueStatus): string => {
    const number = of(status)
    return number === undefined ? "-" : `${format(number)}${remarksOf(status)[field] === undefined ? "" : "*"}`
  }

const isDeadMissing = ({ dead }: QueueStatus): boolean => dead.length > 0 && dead.every(({ isMissing }) => isMissing)

const columns: ReadonlyArray<Column> = [
  { field: "ready", title: "ready", show: numbered("ready", ({ ready }) => ready) },
  { field: "inFlight", title: "in flight", show: numbered("inFlight", ({ inFlight }) => inFlight) },
  { field: "delayed", title: "delayed", show: numbered("delayed", ({ delayed }) => delayed) },
  { field: "backoff", title: "due within", show: ({ backoff }) => showDue(backoff) },
  {
    field: "dead",
    title: "dead",
    show: (status) => (isDeadMissing(status) ? "missing" : numbered("dead", Core.allDeadOf)(status))
  },
  { field: "undelivered", title: "undelivered", show: numbered("undelivered", ({ undelivered }) => undelivered) },
  { field: "quarantined", title: "quarantined", show: numbered("quarantined", () => undefined) },
  { field: "oldest", title: "oldest", show: numbered("oldest", ({ oldest }) => oldest, showAge) },
  { field: "consumers", title: "consumers", show: numbered("consumers", ({ consumers }) => consumers) }
]

/** Messages that wait for an earlier one of their key: few queues have some. */
const blocked: Column = { field: "blocked", title: "blocked", show: numbered("blocked", ({ blocked = 0 }) => blocked) }

const columnsOf = (all: ReadonlyArray<QueueStatus>): ReadonlyArray<Column> =>
  all.some((status) => status.blocked !== undefined) ? [...columns.slice(0, 3), blocked, ...columns.slice(3)] : columns

/** Formats the queue's name, with `(missing)` and `(paused)`. */
const nameOf = ({ isMissing, isPaused, queue }: QueueStatus, paint: Service["paint"]): string =>
  [
    queue,
    ...(isMissing ? [paint("red", "(missing)")] : []),
    ...(isPaused === true ? [paint("yellow", "(paused)")] : [])
  ].join(" ")

/** Fields that are red if they are not 0. */
const alarming: ReadonlySet<Core.Field> = new Set(["dead", "undelivered"])

/** Returns each remark once. */
const notes = (all: ReadonlyArray<QueueStatus>): ReadonlyArray<string> => [
  ...new Set(
    columns.flatMap(({ field, show, title }) =>
      all.flatMap((status) => {
        const remark = remarksOf(status)[field]
        const mark = /^(-|missing)$/.exec(show(status))?.[0] ?? "*"
        return remark === undefined ? [] : [`${mark} ${title}: ${remark}`]
      })
    )
  )
]

/** Shows the numbers of queues, and their remarks below. */
export const table = (all: ReadonlyArray<QueueStatus>, paint: Service["paint"]): string =>
  [
    Table.format(
      ["queue", ...columnsOf(all).map(({ title }) => title)],
      all.map((status) => [
        nameOf(status, paint),
        ...columnsOf(all).map(({ field, show }) => {
          const text = show(status)
          return alarming.has(field) && !/^(0\*?|-)$/.test(text) ? paint("red", text) : text
        })
      ])
    ),
    ...notes(all).map((note) => paint("dim", note))
  ].join("\n")

/** Shows a queue's numbers in one line. */
export const line = (status: QueueStatus): string =>
  [
    nameOf(status, (_, text) => text),
    ...columnsOf([status]).flatMap(({ show, title }) => {
      const text = show(status)
      return text === "" ? [] : [`${title}: ${text}`]
    })
  ].join("  ")
