/** The messages that earlier runs left on the broker. */
import { type DeadLetterQueue, deadLetters, delayedMessages } from "@requeue/operations/promise"
import { setTimeout as sleep } from "node:timers/promises"
import type { Requeue } from "@requeue/core/promise"
import type { Earlier } from "./journal.ts"
import { type Options, UsageError } from "./options.ts"
import { webhook } from "./payloads.ts"
import { deadLetterQueue, policy, queue } from "./policy.ts"
import type { Visit } from "./receiver.ts"
import type { Report } from "./report.ts"

export interface Backlog {
  /** Whether earlier runs have published the message. */
  readonly isPublished: (id: string) => boolean
  /** Whether an earlier run has delivered the message, and the broker has removed it. */
  readonly isDone: (id: string) => boolean
  /** The number of messages in the queue. */
  readonly size: number
  /** The number of published messages that are no longer in the queue. */
  readonly ended: number
  /** The accepted requests of earlier runs. */
  readonly visits: ReadonlyArray<Pick<Visit, "id" | "accepted">>
  readonly continues: Report["continues"]
}

/** The backlog of a first run. */
const empty: Backlog = {
  isPublished: () => false,
  isDone: () => false,
  size: 0,
  ended: 0,
  visits: [],
  continues: null
}

const pollInterval = 100

const limit = 1_000_000

const idsOf = async ({ list }: Pick<DeadLetterQueue, "list">): Promise<ReadonlyArray<string>> =>
  (await list({ limit })).map(({ id }) => id)

/** Fails if the queues have messages without a journal: those of another program would distort the books. */
const insistOnEmpty = async (requeue: Requeue): Promise<void> => {
  for (const name of [queue, deadLetterQueue]) {
    const { delayed = 0, inFlight = 0, ready = 0 } = await requeue.counts(name)
    const messages = ready + inFlight + delayed
    if (messages === 0) continue
    throw new UsageError(
      `--url: the queue ${name} there has ${messages} messages, perhaps of an earlier run; ` +
        "purge or delete it, or name another virtual host"
    )
  }
}

/** Reads what is left. The messages of a killed run's handlers return when their leases end. */
export const readBacklog = async (
  requeue: Requeue,
  earlier: Earlier | undefined,
  { count, seed }: Pick<Options, "count" | "seed">
): Promise<Backlog> => {
  if (earlier === undefined) {
    await insistOnEmpty(requeue)
    return empty
  }
  const { accepted, published } = earlier
  while (((await requeue.counts(queue)).inFlight ?? 0) > 0) await sleep(pollInterval)
  // Delayed ones first: they may become due meanwhile.
  const delayed = await delayedMessages(requeue, queue, { retry: policy.retry }).list({ limit })
  const queued = new Set([...delayed.messages.map(({ id }) => id), ...(await idsOf(deadLetters(requeue, queue)))])
  // A killed run may have sent a burst without writing it to the journal.
  const found = new Set([...queued, ...accepted, ...(await idsOf(deadLetters(requeue, deadLetterQueue)))])
  const ids = Array.from({ length: count }, (_, index) => webhook(seed, index).id)
  const known = new Set(ids.filter((id, index) => index < published || found.has(id)))
  return {
    isPublished: (id) => known.has(id),
    isDone: (id) => known.has(id) && !queued.has(id),
    size: queued.size,
    ended: known.size - queued.size,
    visits: accepted.map((id) => ({ id, accepted: true })),
    continues: { published, delivered: new Set(accepted).size }
  }
}
