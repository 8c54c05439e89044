/** A purge as a job. */
import { DeadLetters } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { Connection } from "./connections.ts"
import type { Selection, Work } from "./jobs.ts"
import * as Redrive from "./redrive.ts"

/** Removes letters for good. */
export const make = (connection: Connection, queue: string, selection: Selection): Work => {
  const filter = Redrive.filterOf(selection)
  return {
    kind: "purge",
    connection,
    queue,
    selection,
    options: { cause: selection.title },
    run: (_, signal, tell) =>
      connection.use(({ admin }) =>
        Effect.gen(function* () {
          const { purge } = yield* DeadLetters.make(queue)
          const removed = yield* purge(filter === undefined ? { all: true, signal } : { filter, signal })
          const { delayed = 0, inFlight, isRead, ready } = yield* admin.counts(queue)
          // A purge of all is one call of the broker: what was asked for after it has begun does not stop it.
          const isStopped = signal.aborted && (filter !== undefined || removed === 0)
          tell({
            purged: {
              removed,
              left: ready === undefined ? undefined : ready + delayed,
              held: isRead === false ? 0 : inFlight,
              stoppedBy: isStopped ? "abort" : undefined
            }
          })
        })
      )
  }
}
