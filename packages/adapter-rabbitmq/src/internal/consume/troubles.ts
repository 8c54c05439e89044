/**
 * Queues that are not consumed though they should be, because the server refuses or they are gone. Each reason is
 * logged once, and the end of the trouble; meanwhile the broker's connection is `down`, with the reason.
 */
import type { Broker, BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"

/** The state of the connection; `because` says what a broker that can be reached does not give. */
export type State = ReturnType<Broker.Service["connection"]> & { readonly because?: string }

/** The trouble of one subscription. */
interface Trouble {
  /** The queue is not consumed, for this reason. */
  readonly tell: (error: BrokerError.BrokerError) => Effect.Effect<void>
  /** The queue is consumed, and an object of its own cannot be declared again. */
  readonly note: (error: BrokerError.BrokerError) => Effect.Effect<void>
  /** The queue is consumed. */
  readonly over: Effect.Effect<void>
  /** Nobody wants to consume the queue any more. */
  readonly end: () => void
}

/** The troubles of a broker. */
export interface Troubles {
  readonly of: (queue: string) => Trouble
  /** The state of the connection and of the subscriptions on it. */
  readonly state: (connection: State) => State
}

/** No trouble, at first. `now` returns milliseconds since the epoch. */
export const make = (now: () => number): Troubles => {
  const present = new Map<object, { readonly since: number; readonly error: BrokerError.BrokerError }>()
  let lastOver = 0

  const of = (queue: string): Trouble => {
    const key = {}
    let noted: string | undefined
    const end = (): void => {
      if (present.delete(key)) lastOver = now()
    }
    return {
      tell: (error) =>
        Effect.suspend(() => {
          const before = present.get(key)
          present.set(key, { since: before?.since ?? now(), error })
          return before?.error.reason === error.reason
            ? Effect.void
            : Effect.annotateLogs(Effect.logWarning("not consuming"), { queue, error: error.message })
        }),
      note: ({ message }) =>
        Effect.suspend(() => {
          if (noted === message) return Effect.void
          noted = message
          return Effect.annotateLogs(Effect.logWarning("cannot be declared again"), { queue, error: message })
        }),
      over: Effect.suspend(() => {
        if (!present.has(key)) return Effect.void
        end()
        return Effect.annotateLogs(Effect.logInfo("consuming again"), { queue })
      }),
      end
    }
  }

  return {
    of,
    state: (connection) => {
      if (connection.state === "down") return connection
      const [first, ...others] = [...present.values()].toSorted((a, b) => a.since - b.since)
      if (first === undefined) return { state: "up", since: Math.max(connection.since, lastOver) }
      const because = [first, ...others].map(({ error }) => error.message).join("; ")
      return { state: "down", since: Math.max(connection.since, first.since), because }
    }
  }
}
