/**
 * The status of a queue: its backlog, and its dead letters.
 *
 * When to use: to show people the state of a queue. `Backlog` reports on the queue alone; use `admin.counts` for repeated
 * queries.
 */
import { type Broker, type BrokerError, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { heldOf } from "../internal/heldOf.ts"

/** The dead letters in one queue. */
export interface Dead {
  /** The dead-letter queue's name. */
  readonly queue: string
  /** The number of letters in the queue, without those that a reader holds; `undefined` if the broker cannot count. */
  readonly count: number | undefined
  /**
   * The number of letters that a reader holds, such as a browse or a consumer; `undefined` if the broker does not report
   * it.
   */
  readonly held: number | undefined
  /** Whether a reader holds letters, or may hold some. */
  readonly isHeld: boolean
  /** Whether the dead-letter queue is missing on the broker. `count` is then 0. */
  readonly isMissing: boolean
}

/**
 * The backlog of a queue, and its dead letters. `missing` has the errors of the parts of the broker that do not answer.
 */
export interface QueueStatus extends Backlog.Backlog {
  /** Whether the queue is missing on the broker. Its dead letters and delayed messages may still exist. */
  readonly isMissing: boolean
  /** The dead letters in each dead-letter queue that the policy names. */
  readonly dead: ReadonlyArray<Dead>
}

/**
 * The fields of a status that can have remarks. `quarantined` messages, of which the broker refuses every settlement, are
 * in no count of a broker.
 */
export type Field = Backlog.Field | "dead" | "quarantined"

const waiting = ({ delayed = 0, ready }: Broker.Counts): number | undefined =>
  ready === undefined ? undefined : ready + delayed

/** The figures of a missing queue. They are unknown, because zeros would mean that all is well. */
const unknown = { ready: undefined, inFlight: undefined, oldest: undefined, consumers: undefined }

/** How many queues to ask for at a time. Adapters limit their requests, and combine simultaneous ones. */
export const atOnce = 256

/**
 * Returns the number of dead letters in all queues of the policy; `undefined` if the broker cannot count one of these
 * queues.
 */
export const deadOf = ({ dead }: Pick<QueueStatus, "dead">): number | undefined =>
  dead.reduce(
    (sum: number | undefined, { count }) => (sum === undefined || count === undefined ? undefined : sum + count),
    0
  )

/**
 * Returns the number of dead letters in all queues of the policy. It includes the letters that readers hold, if the broker
 * counts them.
 */
export const allDeadOf = (status: Pick<QueueStatus, "dead">): number | undefined => {
  const ready = deadOf(status)
  return ready === undefined ? undefined : status.dead.reduce((sum, { held = 0 }) => sum + held, ready)
}

/** Returns why the number of dead letters is unknown, or which letters it leaves out. */
const deadRemark = (status: QueueStatus): { readonly dead?: string } => {
  if (deadOf(status) === undefined) return { dead: status.remarks.ready ?? "the broker does not count them" }
  const held = "a reader, such as a redrive, is at work; the broker does not count the letters that it holds"
  return status.dead.some(({ held, isHeld }) => isHeld && held === undefined) ? { dead: held } : {}
}

const quarantined = "kept by consumer processes, which report them: see their health and requeue.consumer.quarantined"

/** Returns why each number is unknown, or what else it counts. */
export const remarksOf = (status: QueueStatus): Readonly<Partial<Record<Field, string>>> => ({
  ...status.remarks,
  ...deadRemark(status),
  quarantined
})

const deadFrom = (queue: string, counts: Broker.Counts): Dead => {
  const held = heldOf(counts)
  const isHeld = counts.isMissing !== true && (held === undefined ? counts.isRead === true : held > 0)
  return { queue, count: waiting(counts), held, isHeld, isMissing: counts.isMissing === true }
}

/** Asks a broker how many letters one dead-letter queue has. The call creates no queue. */
export const deadIn = (
  broker: Pick<Backlog.Teller, "admin">,
  queue: string
): Effect.Effect<Dead, BrokerError.BrokerError> =>
  Effect.map(broker.admin.counts(queue), (counts) => deadFrom(queue, counts))

/** Asks a broker for the status of a queue. The call creates no queue. */
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
      dead: queues.map((queue, index) => deadFrom(queue, told[index]!)),
      missing: [backlog, ...told].flatMap(({ missing = [] }) => missing)
    }
  })
