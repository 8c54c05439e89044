/** A park as a job: it moves letters unchanged to the parking queue, or back. */
import { RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Connection } from "./connections.ts"
import { told, type Work } from "./job.ts"
import { mostOf, type Selection } from "./selection.ts"

/** Returns the dead-letter queues of the configured queues. */
const deadLetterQueues = ({ queues }: Pick<Connection, "queues">): ReadonlyArray<string> =>
  queues.flatMap(({ name, retry }) => RetryPolicy.deadLetterQueues(retry, name))

/** Returns the dead-letter queue of a parking queue; `undefined` for other queues. */
export const homeOf = (connection: Pick<Connection, "queues">, queue: string): string | undefined =>
  deadLetterQueues(connection).find((dead) => DeadLetters.parkingQueue(dead) === queue)

/** Whether a queue has dead letters of configured queues, parked or not. */
export const hasLetters = (connection: Pick<Connection, "queues">, queue: string): boolean =>
  deadLetterQueues(connection).includes(queue) || homeOf(connection, queue) !== undefined

/** Parks letters of a dead-letter queue, or moves parked letters back. */
export const make = (connection: Connection, queue: string, selection: Selection): Work => {
  const to = homeOf(connection, queue) ?? DeadLetters.parkingQueue(queue)
  return {
    kind: "park",
    connection,
    queue,
    selection,
    to,
    options: { letters: selection.title, to },
    run: ({ audit, signal, tell }) =>
      connection.use(() =>
        Effect.flatMap(DeadLetters.make(queue), ({ count, park }) =>
          Effect.flatMap(
            park({
              create: true,
              to,
              filter: selection.isMeant,
              limit: mostOf(selection),
              audit: audit({ to }),
              signal,
              onProgress: (report) => tell({ report })
            }),
            (report) => {
              tell({ report })
              return told(count, tell)
            }
          )
        )
      )
  }
}
