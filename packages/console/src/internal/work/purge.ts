/** A purge as a job. */
import type { Broker } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Connection } from "./connections.ts"
import type { Work } from "./job.ts"
import type { Selection } from "./selection.ts"

/** Letters that another reader has, as a redrive tells them. */
const heldOf = ({ inFlight, isRead }: Broker.Counts): number | undefined => {
  if (isRead === false) return 0
  // Somebody reads, and the number may be from before.
  return isRead === true && inFlight === 0 ? undefined : inFlight
}

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
      connection.use(({ admin }) =>
        Effect.gen(function* () {
          const { purge } = yield* DeadLetters.make(queue)
          const removed = yield* purge(
            filter === undefined ? { all: true, signal } : { filter, signal, audit: audit({ isRemoval: true }) }
          )
          // What is gone is told, even where the broker does not count any more.
          const counts = yield* Effect.orElseSucceed(admin.counts(queue), () => undefined)
          // A purge of all is one call of the broker: what was asked for after it has begun does not stop it.
          const isStopped = signal.aborted && (filter !== undefined || removed === 0)
          tell({
            purged: {
              removed,
              left: counts?.ready === undefined ? undefined : counts.ready + (counts.delayed ?? 0),
              held: counts && heldOf(counts),
              stoppedBy: isStopped ? "abort" : undefined
            }
          })
        })
      )
  }
}
