/**
 * The status of a queue: its backlog, and its dead letters.
 *
 * When to use: to show people the state of a queue. `Backlog` reports on the queue alone; use `admin.counts` for repeated
 * queries.
 */
import { type Broker, type BrokerError, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import * as Effect from "effect/Effect"

/** The dead letters in one queue. */
export interface Dead {
  /** The dead-letter queue's name. */
  readonly queue: string
  /** The letters, including those that a reader holds; 0 if the queue is missing, `undefined` if the broker cannot count. */
  readonly count: number | undefined
  /** Whether the broker has no such queue. */
  readonly isMissing: boolean
  /** Whether a reader, such as a redrive, may hold letters that `count` leaves out, because the broker does not count them. */
  readonly isHeld: boolean
}

/** The backlog of a queue, and its dead letters. `missing` has the errors of both. */
export interface QueueStatus extends Backlog.Backlog {
  /** Whether the broker has no such queue. Its dead letters and delayed messages may still exist. */
  readonly isMissing: boolean
  /** The dead letters, by the dead-letter queues of the policy. */
  readonly dead: ReadonlyArray<Dead>
}

/** The fields of a status that have remarks. Consumers keep quarantined messages, so no broker counts them. */
export type Field = Backlog.Field | "dead" | "quarantined"

const deadIn = (queue: string, { delayed = 0, inFlight, isMissing = false, isRead, ready }: Broker.Counts): Dead => ({
  queue,
  count: ready === undefined ? undefined : ready + delayed + (inFlight ?? 0),
  isMissing,
  isHeld: inFlight === undefined && isRead === true
})

/** A missing queue has no figures: zeros would mean that all is well. */
const unknown = { ready: undefined, inFlight: undefined, oldest: undefined, consumers: undefined }

/** How many queues to ask for at a time. Adapters bound their own requests, and combine those that come together. */
export const atOnce = 256

/** Returns the number of dead letters in all queues of the policy; `undefined` if the broker cannot count one of them. */
export const deadOf = ({ dead }: Pick<QueueStatus, "dead">): number | undefined =>
  dead.reduce(
    (sum: number | undefined, { count }) => (sum === undefined || count === undefined ? undefined : sum + count),
    0
  )

/** Why the number of dead letters is unknown, or what it leaves out. */
const deadRemark = (status: QueueStatus): { readonly dead?: string } => {
  if (deadOf(status) === undefined) return { dead: status.remarks.ready ?? "the broker does not count them" }
  const held = "a reader, such as a redrive, is at work; the broker does not count the letters that it holds"
  return status.dead.some(({ isHeld }) => isHeld) ? { dead: held } : {}
}

const quarantined = "kept by consumer processes, which report them: see their health and requeue.consumer.quarantined"

/** Returns why each number is unknown, or what else it counts. */
export const remarksOf = (status: QueueStatus): Readonly<Partial<Record<Field, string>>> => ({
  ...status.remarks,
  ...deadRemark(status),
  quarantined
})

/** Asks a broker for the status of a queue. It creates no queue. */
export const of = (
  broker: Backlog.Teller,
  request: Backlog.Request
): Effect.Effect<QueueStatus, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const queues = RetryPolicy.deadLetterQueues(request.retry, request.queue)
    // At the same time, so adapters can combine their requests.
    const [backlog, told] = yield* Effect.all(
      [Backlog.of(broker, request), Effect.forEach(queues, broker.admin.counts, { concurrency: "unbounded" })],
      { concurrency: "unbounded" }
    )
    const { isMissing = false } = backlog
    return {
      ...backlog,
      ...(isMissing ? unknown : {}),
      isMissing,
      dead: queues.map((queue, index) => deadIn(queue, told[index]!)),
      missing: [backlog, ...told].flatMap(({ missing = [] }) => missing)
    }
  })
