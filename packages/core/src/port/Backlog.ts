/**
 * The backlog of a queue: all that waits for its consumers, and where, as far as the broker can tell.
 *
 * When to use: to show somebody what waits. `counts` is for what asks again and again.
 */
import * as Effect from "effect/Effect"
import type { BrokerError } from "./BrokerError.ts"
import type { Counts } from "./Counts.ts"
import type { RetryPolicy } from "../policy/RetryPolicy.ts"

/** The queue that is meant. */
export interface Request {
  readonly queue: string
  /** The policy of its consumers: where a broker has a place for each delay, it says which delays there are. */
  readonly retry: RetryPolicy
}

/** Delayed messages that are due about the same time. */
export interface Due {
  /** Milliseconds within which they are due. */
  readonly within: number
  readonly count: number
}

/** The numbers of a backlog. */
export type Field = "ready" | "inFlight" | "delayed" | "backoff" | "undelivered" | "oldest" | "consumers"

/** All that waits in a queue. A number that the broker cannot tell is `undefined`, and `remarks` says why. */
export interface Backlog extends Pick<Counts, "ready" | "inFlight" | "delayed" | "isMissing" | "isPaused" | "missing"> {
  /** The delayed messages by when they are due, the soonest first. None of it has a count of 0. */
  readonly backoff: ReadonlyArray<Due> | undefined
  /** Messages that were due, and found their queue gone; the broker keeps them aside. 0 on brokers that have no such place. */
  readonly undelivered: number | undefined
  /** Milliseconds since the first publish of the message that has been ready for longest; 0 when none is. */
  readonly oldest: number | undefined
  /** Those who are subscribed to the queue now, as the broker counts them. */
  readonly consumers: number | undefined
  /** Remarks on single numbers: why one is unknown, or what else it counts. Plain sentences without a full stop. */
  readonly remarks: Readonly<Partial<Record<Field, string>>>
}

/** Why an adapter that has no `backlog` does not tell a number. */
const untold = "the adapter does not tell"

/** The part of a broker that tells of queues. */
export interface Teller {
  readonly admin: {
    readonly counts: (queue: string) => Effect.Effect<Counts, BrokerError>
    readonly backlog?: ((request: Request) => Effect.Effect<Backlog, BrokerError>) | undefined
  }
}

/** The backlog of a queue on a broker; what `counts` tells, where the adapter knows no more. */
export const of = ({ admin }: Teller, request: Request): Effect.Effect<Backlog, BrokerError> =>
  admin.backlog?.(request) ?? Effect.map(admin.counts(request.queue), ofCounts)

const ofCounts = ({ delayed, inFlight, isMissing, isPaused, missing, ready }: Counts): Backlog => {
  const told = { ready, inFlight, delayed, backoff: undefined, undelivered: undefined, oldest: undefined }
  const all = { ...told, consumers: undefined }
  const unknown = Object.entries(all).flatMap(([field, number]) => (number === undefined ? [[field, untold]] : []))
  return { ...all, isMissing, isPaused, missing, remarks: Object.fromEntries(unknown) }
}

/** Delayed messages grouped by when they are due, in steps in which people think: 1 s, 10 s, 1 min, 10 min, 1 h, 6 h, 24 h. */
export const group = (waits: Iterable<number>): ReadonlyArray<Due> => {
  const counted = new Map<number, number>()
  for (const wait of waits) {
    const within = steps.find((step) => wait <= step) ?? steps.at(-1)!
    counted.set(within, (counted.get(within) ?? 0) + 1)
  }
  return sum([...counted].map(([within, count]) => ({ within, count })))
}

const steps = [1000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000]

/** Each `within` once, the soonest first, without those that have no messages. */
export const sum = (parts: ReadonlyArray<Due>): ReadonlyArray<Due> => {
  const counted = new Map<number, number>()
  for (const { count, within } of parts) counted.set(within, (counted.get(within) ?? 0) + count)
  return [...counted]
    .flatMap(([within, count]) => (count > 0 ? [{ within, count }] : []))
    .toSorted((a, b) => a.within - b.within)
}
