/**
 * The status of a queue: all that waits for its consumers, and what its policy has given up.
 *
 * When to use: to show somebody how a queue is. `Backlog` tells of the queue alone, and `admin.counts` is for what asks again
 * and again.
 */
import { type Broker, type BrokerError, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { heldOf } from "../internal/heldOf.ts"

/** The dead letters in one queue. */
export interface Dead {
  /** The dead-letter queue's name. */
  readonly queue: string
  /** Letters in the queue, without those that a reader holds; `undefined` where the broker cannot count. */
  readonly count: number | undefined
  /** Letters that a reader holds, such as a browse or a consumer; `undefined` where the broker does not report it. */
  readonly held: number | undefined
  /** Whether a reader holds letters, or may hold some. */
  readonly isHeld: boolean
  /** Whether the broker has no such queue. Its `count` is 0 then. */
  readonly isMissing: boolean
}

/** The backlog of a queue, and its dead letters. `missing` tells of all of these. */
export interface QueueStatus extends Backlog.Backlog {
  /** Whether the broker has no such queue. Its dead letters, and messages that wait for their delay, may be there. */
  readonly isMissing: boolean
  /** The dead letters, by the queues that the policy names. */
  readonly dead: ReadonlyArray<Dead>
}

/** The fields of a status that have remarks. Consumers keep quarantined messages, so no broker counts them. */
export type Field = Backlog.Field | "dead" | "quarantined"

const waiting = ({ delayed = 0, ready }: Broker.Counts): number | undefined =>
  ready === undefined ? undefined : ready + delayed

/** A queue that is not there has no numbers: zeros would say that all is well. */
const nobody = { ready: undefined, inFlight: undefined, oldest: undefined, consumers: undefined }

/**
 * Queues whose status is worth asking for at a time: adapters bound their own requests, and ask together for what they are asked
 * together.
 */
export const atOnce = 256

/** Returns the number of dead letters in all queues of the policy; `undefined` where the broker cannot count one of them. */
export const deadOf = ({ dead }: Pick<QueueStatus, "dead">): number | undefined =>
  dead.reduce(
    (sum: number | undefined, { count }) => (sum === undefined || count === undefined ? undefined : sum + count),
    0
  )

const quarantined = "kept by processes that consume: their health and the metric requeue.consumer.quarantined tell"

/** Returns why each number is unknown, or what else it counts. */
export const remarksOf = (status: QueueStatus): Readonly<Partial<Record<Field, string>>> => ({
  ...status.remarks,
  ...(deadOf(status) === undefined ? { dead: status.remarks.ready ?? "the broker does not count them" } : {}),
  quarantined
})

const deadFrom = (queue: string, counts: Broker.Counts): Dead => {
  const held = heldOf(counts)
  const isHeld = counts.isMissing !== true && (held === undefined ? counts.isRead === true : held > 0)
  return { queue, count: waiting(counts), held, isHeld, isMissing: counts.isMissing === true }
}

/** Asks a broker how many letters one dead-letter queue has. It makes no queue. */
export const deadIn = (
  broker: Pick<Backlog.Teller, "admin">,
  queue: string
): Effect.Effect<Dead, BrokerError.BrokerError> =>
  Effect.map(broker.admin.counts(queue), (counts) => deadFrom(queue, counts))

/** Asks a broker for the status of a queue. It makes no queue. */
export const of = (
  broker: Backlog.Teller,
  request: Backlog.Request
): Effect.Effect<QueueStatus, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const queues = RetryPolicy.deadLetterQueues(request.retry, request.queue)
    // At the same time: adapters ask together for what they are asked together.
    const [backlog, told] = yield* Effect.all(
      [Backlog.of(broker, request), Effect.forEach(queues, broker.admin.counts, { concurrency: "unbounded" })],
      { concurrency: "unbounded" }
    )
    const { isMissing = false } = backlog
    return {
      ...backlog,
      ...(isMissing ? nobody : {}),
      isMissing,
      dead: queues.map((queue, index) => deadFrom(queue, told[index]!)),
      missing: [backlog, ...told].flatMap(({ missing = [] }) => missing)
    }
  })
