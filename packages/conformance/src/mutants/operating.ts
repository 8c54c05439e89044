/** Brokers that mislead their operators. */
import * as Effect from "effect/Effect"
import type { Mutant } from "../Mutant.ts"

export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "says that it runs while the broker gives it nothing",
    kills: "a consumer whose queue the broker does not give is down, alone and with the reason, until it is given",
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) =>
        Effect.map(subject.start(queue, given, handler), (consumer) => ({
          ...consumer,
          health: () => ({ ...consumer.health(), state: "running", trouble: undefined })
        }))
    })
  },
  {
    name: "tells no queue as missing",
    kills: "a queue that is missing is reported as missing, and counting does not create it",
    broker: (broker) => ({
      ...broker,
      admin: {
        ...broker.admin,
        counts: (queue) => Effect.map(broker.admin.counts(queue), (counts) => ({ ...counts, isMissing: false }))
      }
    })
  },
  {
    name: "lies about what it purged",
    kills: "a purge removes waiting messages, and returns their number",
    broker: (broker) => ({
      ...broker,
      admin: { ...broker.admin, purge: (queue) => Effect.as(broker.admin.purge(queue), 0) }
    })
  },
  {
    name: "purges nothing",
    kills: "a purge removes waiting messages, and returns their number",
    broker: (broker) => ({ ...broker, admin: { ...broker.admin, purge: () => Effect.succeed(3) } })
  },
  {
    name: "purges what is delayed, and counts it not",
    kills: "a purge counts a delayed message if it removes it; if not, that comes at its time",
    broker: (broker) => ({
      ...broker,
      admin: {
        ...broker.admin,
        purge: (queue) =>
          Effect.andThen(broker.admin.counts(queue), ({ ready = 0 }) => Effect.as(broker.admin.purge(queue), ready))
      }
    })
  },
  {
    name: "counts what is delayed as ready",
    kills: "the counts distinguish ready, delayed and in flight",
    broker: (broker) => ({
      ...broker,
      admin: {
        ...broker.admin,
        counts: (queue) =>
          Effect.map(broker.admin.counts(queue), ({ delayed = 0, inFlight, ready = 0 }) => ({
            ready: ready + delayed,
            inFlight,
            delayed: 0
          }))
      }
    })
  }
]
