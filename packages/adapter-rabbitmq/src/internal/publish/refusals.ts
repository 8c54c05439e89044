/**
 * Routes that the server refuses. Each refusal pauses the route, longer each time. Meanwhile its messages fail with the same error
 * and the server is not asked. After the pause one message tries again, and if it fails for another reason, the next one.
 */
import { BoundedMap, type BrokerError, Reconnect } from "@requeue/core/port"

/** The refusals of a broker's routes, by the names of the routes. */
export interface Refusals {
  /** Whether no route is refused; then the names of routes need not be computed. */
  readonly isEmpty: () => boolean
  /** The error of the first of these routes that is paused; `undefined` if a message may try. */
  readonly held: (routes: ReadonlyArray<string>) => BrokerError.BrokerError | undefined
  /** Records that the server accepted a message of these routes, and returns whether one of them was refused before. */
  readonly taken: (routes: ReadonlyArray<string>) => boolean
  /**
   * Records that a message of these routes failed. `route` is the one that the error applies to, if it applies to others' messages.
   * Returns whether this is its first refusal.
   */
  readonly failed: (routes: ReadonlyArray<string>, route: string | undefined, error: BrokerError.BrokerError) => boolean
}

interface Refusal {
  error: BrokerError.BrokerError
  failures: number
  /** Monotonic milliseconds. */
  until: number
}

/** The pauses in milliseconds. After the missing object exists, messages wait no longer than the last. */
const pauses: Reconnect.Pauses = { first: 100, max: 1000 }

/** The number of routes to remember. */
const limit = 1000

/** Reasons that apply to all messages of a route until an operator acts. */
const reasons: ReadonlySet<BrokerError.Reason> = new Set([
  "AccessRefused",
  "QueueMismatch",
  "QueueMissing",
  "Unroutable"
])

/** Has no refusals at first. `elapsed` returns monotonic milliseconds. */
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
      // One message tries; others that arrive meanwhile do not.
      for (const refusal of known) pause(refusal)
      return undefined
    },
    taken: (routes) => {
      const known = routes.filter(refusals.has)
      known.forEach(refusals.delete)
      return known.length > 0
    },
    failed: (routes, route, error) => {
      if (route === undefined || !reasons.has(error.reason)) {
        // The server may accept other messages of these routes by now.
        for (const each of routes) {
          const refusal = refusals.get(each)
          if (refusal !== undefined) refusal.until = 0
        }
        return false
      }
      const refusal = refusals.get(route)
      if (refusal !== undefined) {
        refusal.error = error
        return false
      }
      const first: Refusal = { error, failures: 0, until: 0 }
      pause(first)
      refusals.set(route, first)
      return true
    }
  }
}
