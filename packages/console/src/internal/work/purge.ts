/** A purge as a job. */
import { DeadLetters, QueueStatus } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Connection } from "./connections.ts"
import type { Work } from "./job.ts"
import type { Selection } from "./selection.ts"

/** Removes letters for good. */
export const make = (connection: Connection, queue: string, selection: Selection): Work => {
  const { isMeant: filter } = selection
  return {
    kind: "purge",
    connection,
    queue,
    selection,
    options: { letters: selection.title },
    run: ({ audit, signal, tell }) =>
      connection.use((broker) =>
        Effect.gen(function* () {
          const { purge } = yield* DeadLetters.make(queue)
          const removed = yield* purge(
            filter === undefined ? { all: true, signal } : { filter, signal, audit: audit({ isRemoval: true }) }
          )
          // The purge reports what it has removed, even where the count fails.
          const counts = yield* Effect.orElseSucceed(QueueStatus.deadIn(broker, queue), () => undefined)
          // A purge of all letters is one call, which cannot be stopped after it has begun.
          const isStopped = signal.aborted && (filter !== undefined || removed === 0)
          tell({
            purged: {
              removed,
              left: counts?.count,
              held: counts?.held,
              stoppedBy: isStopped ? "abort" : undefined
            }
          })
        })
      )
  }
}
