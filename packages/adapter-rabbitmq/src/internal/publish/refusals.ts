/**
 * Routes that the server refuses. After each refusal the route has a pause, which grows: meanwhile what is sent there fails
 * with the same error, and nothing is asked of the server. After the pause one message tries.
 */
import { BoundedMap, type BrokerError, Reconnect } from "@requeue/core/port"

/** The refusals of a broker's routes, by the names of the routes. */
export interface Refusals {
  /** Whether no route is refused, which spares the names of routes. */
  readonly isEmpty: () => boolean
  /** The error of the first of these routes that is in its pause; `undefined` where a message may try. */
  readonly held: (routes: ReadonlyArray<string>) => BrokerError.BrokerError | undefined
  /** Notes how a message has ended; answers what is news of its route. */
  readonly note: (route: string, error: BrokerError.BrokerError | undefined) => "refused" | "taken" | undefined
}

interface Refusal {
  error: BrokerError.BrokerError
  failures: number
  /** Monotonic milliseconds. */
  until: number
}

/** Milliseconds: whoever makes what was missing waits no longer than the last. */
const pauses: Reconnect.Pauses = { first: 100, max: 1000 }

/** Routes that are remembered. */
const limit = 1000

/** Reasons that other messages of the route share, and that stay until somebody does something. */
const reasons: ReadonlySet<BrokerError.Reason> = new Set([
  "AccessRefused",
  "QueueMismatch",
  "QueueMissing",
  "Unroutable"
])

/** No refusals, at first. `elapsed` returns monotonic milliseconds. */
export const make = (elapsed: () => number): Refusals => {
  const refusals = BoundedMap.make<Refusal>(limit)

  const pause = (refusal: Refusal): void => {
    refusal.until = elapsed() + Reconnect.pause(++refusal.failures, 1, pauses)
  }

  return {
    isEmpty: refusals.isEmpty,
    held: (routes) => {
      const known = routes.flatMap((route) => refusals.get(route) ?? [])
      const held = known.find(({ until }) => elapsed() < until)
      if (held !== undefined) return held.error
      // One tries, and those that come meanwhile do not.
      for (const refusal of known) pause(refusal)
      return undefined
    },
    note: (route, error) => {
      const refusal = refusals.get(route)
      if (error === undefined) {
        if (refusal === undefined) return undefined
        refusals.delete(route)
        return "taken"
      }
      if (!reasons.has(error.reason)) return undefined
      if (refusal !== undefined) {
        refusal.error = error
        return undefined
      }
      const first: Refusal = { error, failures: 0, until: 0 }
      pause(first)
      refusals.set(route, first)
      return "refused"
    }
  }
}
