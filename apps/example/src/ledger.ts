/** The dispatcher's own account, from the consumer's events: the state of every message, and the delays of its retries. */
import type { Event } from "@requeue/core/promise"

type Place = "in flight" | "retrying" | "delivered" | "dead" | "queued" | "dropped"

/** Messages that ended after this many attempts. */
export interface Ended {
  delivered: number
  deadLettered: number
}

export interface Ledger {
  readonly onEvent: (event: Event) => void
  readonly count: (place: Place) => number
  readonly isDelivered: (id: string) => boolean
  readonly retries: () => number
  /** The number of handler runs that timed out. */
  readonly timedOut: () => number
  /** The number of messages that will not be delivered again. */
  readonly ended: () => number
  /** The numbers of messages that ended, by their number of attempts. */
  readonly attempts: ReadonlyMap<number, Ended>
  /** The times at which retries are due: that of the failure plus the delay. Keyed by {@link turn}. */
  readonly due: ReadonlyMap<string, number>
  /** The latest failure, as text. */
  readonly latest: () => string
}

/** The key of one delivery of one message. */
export const turn = (id: string, attempt: number): string => `${id} ${attempt}`

export const makeLedger = (now: () => number = () => performance.now()): Ledger => {
  const places = new Map<string, { readonly place: Place; readonly attempts: number }>()
  const counts = new Map<Place, number>()
  const failedAt = new Map<string, number>()
  const due = new Map<string, number>()
  const byAttempts = new Map<number, Ended>()
  let retries = 0
  let timedOut = 0
  let latest = ""

  const move = (id: string, attempts: number, place: Place): void => {
    const before = places.get(id)
    // A retry without delay may be received before the event of its scheduling.
    if (before !== undefined && before.attempts > attempts) return
    if (before !== undefined) counts.set(before.place, count(before.place) - 1)
    places.set(id, { place, attempts })
    counts.set(place, count(place) + 1)
  }

  const count = (place: Place): number => counts.get(place) ?? 0

  const end = (attempts: number, how: keyof Ended): void => {
    const entry = byAttempts.get(attempts) ?? { delivered: 0, deadLettered: 0 }
    entry[how]++
    byAttempts.set(attempts, entry)
  }

  const onEvent = (event: Event): void => {
    switch (event._tag) {
      case "Received":
        return move(event.id, event.attempts, "in flight")
      case "AttemptFailed":
        // The delay is counted from the earliest possible moment, which makes the check strict.
        failedAt.set(event.id, now())
        if (event.error.name === "HandlerTimeout") timedOut++
        return
      case "RetryScheduled":
        retries++
        due.set(turn(event.id, event.attempts + 1), (failedAt.get(event.id) ?? now()) + event.delay)
        failedAt.delete(event.id)
        latest = `${event.error?.message ?? "asked for"}; retry ${event.attempts} in ${(event.delay / 1000).toFixed(1)} s`
        return move(event.id, event.attempts, "retrying")
      case "Succeeded":
        end(event.attempts, "delivered")
        return move(event.id, event.attempts, "delivered")
      case "DeadLettered":
        end(event.attempts, "deadLettered")
        latest = `${event.error.message}; dead-lettered: ${event.reason}`
        return move(event.id, event.attempts, "dead")
      case "Dropped":
        return move(event.id, event.attempts, "dropped")
      case "Released":
      case "SettleFailed":
        return move(event.id, event.attempts, "queued")
      default:
        return
    }
  }

  return {
    onEvent,
    count,
    isDelivered: (id) => places.get(id)?.place === "delivered",
    retries: () => retries,
    timedOut: () => timedOut,
    ended: () => count("delivered") + count("dead") + count("dropped"),
    attempts: byAttempts,
    due,
    latest: () => latest
  }
}
