/** Parking as a job: letters are moved aside as they are, or back. */
import { RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Connection } from "./connections.ts"
import { told, type Work } from "./job.ts"
import { mostOf, type Selection } from "./selection.ts"

/** The dead-letter queues of the queues that are configured. */
const deadLetterQueues = ({ queues }: Pick<Connection, "queues">): ReadonlyArray<string> =>
  queues.flatMap(({ name, retry }) => RetryPolicy.deadLetterQueues(retry, name))

/** The dead-letter queue whose parked letters a queue has; `undefined` where it is no such queue. */
export const homeOf = (connection: Pick<Connection, "queues">, queue: string): string | undefined =>
  deadLetterQueues(connection).find((dead) => DeadLetters.parkingQueue(dead) === queue)

/** Whether a queue has dead letters of queues that are configured, parked or not. */
export const hasLetters = (connection: Pick<Connection, "queues">, queue: string): boolean =>
  deadLetterQueues(connection).includes(queue) || homeOf(connection, queue) !== undefined

/** Moves letters of a dead-letter queue aside, and parked ones back. */
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
