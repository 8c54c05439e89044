/**
 * The backlog of a queue: all waiting messages, and where they wait.
 *
 * When to use: to show operators the state of a queue. Use `counts` for repeated queries.
 */
import * as Effect from "effect/Effect"
import type { BrokerError } from "./BrokerError.ts"
import type { Counts } from "./Counts.ts"
import type { RetryPolicy } from "../policy/RetryPolicy.ts"

/** The queue to describe. */
export interface Request {
  readonly queue: string
  /** The policy of the queue's consumers. Brokers that keep each delay in a separate place need the policy's delays. */
  readonly retry: RetryPolicy
}

/** Delayed messages that are due about the same time. */
export interface Due {
  /** The messages are due within this many milliseconds. */
  readonly within: number
  readonly count: number
}

/** The figures of a backlog. */
export type Field = "ready" | "inFlight" | "delayed" | "blocked" | "backoff" | "undelivered" | "oldest" | "consumers"

/** The waiting messages of a queue. A figure that the broker cannot report is `undefined`; see `remarks`. */
export interface Backlog extends Pick<
  Counts,
  "ready" | "inFlight" | "delayed" | "blocked" | "isMissing" | "isPaused" | "missing"
> {
  /** The delayed messages by due time, soonest first, without empty groups. */
  readonly backoff: ReadonlyArray<Due> | undefined
  /** Messages that the broker keeps because their queue was missing when they were due; 0 on brokers that keep none. */
  readonly undelivered: number | undefined
  /** Milliseconds since the first publish of the message that has been ready longest; 0 if none is ready. */
  readonly oldest: number | undefined
  /** Current subscribers of the queue, as the broker counts them. */
  readonly consumers: number | undefined
  /** Why a figure is unknown, or what else it counts: plain sentences without a full stop. */
  readonly remarks: Readonly<Partial<Record<Field, string>>>
}

/** The remark on figures that an adapter without `backlog` does not report. */
const notReported = "the adapter does not report it"

/** The part of a broker that reports on queues. */
export interface Teller {
  readonly admin: {
    readonly counts: (queue: string) => Effect.Effect<Counts, BrokerError>
    readonly backlog?: ((request: Request) => Effect.Effect<Backlog, BrokerError>) | undefined
  }
}

/** Returns the backlog of a queue, or the figures of `counts` if the adapter has no `backlog`. */
export const of = ({ admin }: Teller, request: Request): Effect.Effect<Backlog, BrokerError> =>
  admin.backlog?.(request) ?? Effect.map(admin.counts(request.queue), ofCounts)

const ofCounts = ({ blocked, delayed, inFlight, isMissing, isPaused, missing, ready }: Counts): Backlog => {
  const counts = { ready, inFlight, delayed, backoff: undefined, undelivered: undefined, oldest: undefined }
  const all = { ...counts, consumers: undefined }
  const unknown = Object.entries(all).flatMap(([field, number]) => (number === undefined ? [[field, notReported]] : []))
  return { ...all, blocked, isMissing, isPaused, missing, remarks: Object.fromEntries(unknown) }
}

/**
 * Groups delayed messages by due time: within 1 s, 10 s, 1 min, 10 min, 1 h, 6 h, 24 h. `waits` are the remaining
 * delays, in milliseconds.
 */
export const group = (waits: Iterable<number>): ReadonlyArray<Due> => {
  const counted = new Map<number, number>()
  for (const wait of waits) {
    const within = steps.find((step) => wait <= step) ?? steps.at(-1)!
    counted.set(within, (counted.get(within) ?? 0) + 1)
  }
  return sum([...counted].map(([within, count]) => ({ within, count })))
}

const steps = [1000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000]

/** Merges groups with the same `within`. The result is sorted, soonest first, and has no empty groups. */
export const sum = (parts: ReadonlyArray<Due>): ReadonlyArray<Due> => {
  const counted = new Map<number, number>()
  for (const { count, within } of parts) counted.set(within, (counted.get(within) ?? 0) + count)
  return [...counted]
    .flatMap(([within, count]) => (count > 0 ? [{ within, count }] : []))
    .toSorted((a, b) => a.within - b.within)
}
