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
      connection.use(() =>
        Effect.flatMap(DeadLetters.make(queue), ({ purge }) =>
          Effect.map(purge(filter === undefined ? { all: true, signal } : { filter, signal }), (removed) =>
            tell({ removed })
          )
        )
      )
  }
}
