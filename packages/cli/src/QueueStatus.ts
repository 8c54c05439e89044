/** The numbers of a queue and of its dead-letter queues; `null` where the broker cannot tell. */
import { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as DeadLetterTarget from "./DeadLetterTarget.ts"
import type { Service } from "./Output.ts"
import * as Table from "./Table.ts"
import type * as Target from "./Target.ts"

export interface QueueStatus {
  readonly queue: string
  readonly ready: number | null
  readonly inFlight: number | null
  readonly delayed: number | null
  /** Messages that wait, by dead-letter queue. */
  readonly dead: Readonly<Record<string, number | null>>
}

const waiting = ({ delayed = 0, ready }: Broker.Counts): number | null => (ready === undefined ? null : ready + delayed)

/** Asks the broker for a queue's numbers. */
export const of = Effect.fnUntraced(function* (queue: Target.Queue) {
  const { admin } = yield* Broker.Broker
  const { delayed = null, inFlight = null, ready = null } = yield* admin.counts(queue.name)
  const dead = yield* Effect.forEach(DeadLetterTarget.of(queue), (name) =>
    Effect.map(admin.counts(name), (counts) => [name, waiting(counts)] as const)
  )
  const status: QueueStatus = { queue: queue.name, ready, inFlight, delayed, dead: Object.fromEntries(dead) }
  return status
})

/** The number of dead letters in all queues; `null` where one of them cannot be counted. */
const deadOf = ({ dead }: QueueStatus): number | null =>
  Object.values(dead).reduce((sum: number | null, count) => (sum === null || count === null ? null : sum + count), 0)

const show = (count: number | null): string => String(count ?? "-")

export const table = (all: ReadonlyArray<QueueStatus>, paint: Service["paint"]): string =>
  Table.format(
    ["queue", "ready", "in flight", "delayed", "dead"],
    all.map((status) => {
      const dead = deadOf(status)
      const cells = [status.ready, status.inFlight, status.delayed].map(show)
      return [status.queue, ...cells, dead === 0 ? "0" : paint("red", show(dead))]
    })
  )

/** Shows a queue's numbers in one line. */
export const line = (status: QueueStatus): string =>
  [
    status.queue,
    `ready: ${show(status.ready)}`,
    `in flight: ${show(status.inFlight)}`,
    `delayed: ${show(status.delayed)}`,
    `dead: ${show(deadOf(status))}`
  ].join("  ")
