/** The numbers of a queue and of its dead-letter queues; `null` where the broker cannot tell. */
import { Broker, type BrokerError } from "@requeue/core"
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
  /** Whether an operator has paused it. */
  readonly paused: boolean
}

/** The numbers, and why parts of the broker have told none. */
interface Asked {
  readonly status: QueueStatus
  readonly missing: ReadonlyArray<BrokerError.BrokerError>
}

const waiting = ({ delayed = 0, ready }: Broker.Counts): number | null => (ready === undefined ? null : ready + delayed)

/** Asks the broker for a queue's numbers. */
export const of = Effect.fnUntraced(function* (queue: Target.Queue) {
  const { admin } = yield* Broker.Broker
  const counts = yield* admin.counts(queue.name)
  const { delayed = null, inFlight = null, isPaused = false, ready = null } = counts
  const letters = yield* Effect.forEach(DeadLetterTarget.of(queue), (name) =>
    Effect.map(admin.counts(name), (told) => ({ name, told }))
  )
  const dead = Object.fromEntries(letters.map(({ name, told }) => [name, waiting(told)]))
  const asked: Asked = {
    status: { queue: queue.name, ready, inFlight, delayed, dead, paused: isPaused },
    missing: [counts, ...letters.map(({ told }) => told)].flatMap(({ missing = [] }) => missing)
  }
  return asked
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
      const name = status.paused ? `${status.queue} ${paint("yellow", "(paused)")}` : status.queue
      return [name, ...cells, dead === 0 ? "0" : paint("red", show(dead))]
    })
  )

/** Shows a queue's numbers in one line. */
export const line = (status: QueueStatus): string =>
  [
    status.paused ? `${status.queue} (paused)` : status.queue,
    `ready: ${show(status.ready)}`,
    `in flight: ${show(status.inFlight)}`,
    `delayed: ${show(status.delayed)}`,
    `dead: ${show(deadOf(status))}`
  ].join("  ")
