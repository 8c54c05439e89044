/** The redrive of an edited copy, as a job. */
import { RetryPolicy } from "@requeue/core"
import { Capabilities, KnownQueues } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Connection } from "./connections.ts"
import type { Draft } from "./drafts.ts"
import type { Work } from "./job.ts"
import * as Selection from "./selection.ts"

/** Publishes the copy of a draft to a queue, by default to the queue that the letter came from. */
export const make = (connection: Connection, draft: Draft, to: string | undefined): Work => {
  const { copy, key, letter, place, title: id } = draft
  const { queue } = place
  const goal = to ?? letter.origin?.queue
  const retry = connection.queues.find(({ name }) => name === goal)?.retry ?? RetryPolicy.make()
  const wait = DeadLetters.waitFor([retry])
  return {
    kind: "edit",
    connection,
    queue,
    selection: {
      cause: undefined,
      letter: key,
      search: {},
      filter: undefined,
      title: Selection.titleOf({ cause: undefined, id, filter: undefined }),
      isMeant: Selection.withKey(key)
    },
    to: goal,
    isLong: true,
    options: { letter: letter.id, to: goal },
    run: ({ audit, id: operation, signal, tell }) =>
      connection.use((broker) => {
        tell({ pace: { wait, untold: Capabilities.untold(broker.capabilities) } })
        return Effect.flatMap(DeadLetters.make(queue), ({ edit }) =>
          Effect.map(
            edit(letter, {
              body: copy?.body,
              headers: copy?.headers,
              to,
              create: false,
              wait,
              watch: (target) => KnownQueues.deadLetterQueues(broker, target),
              operation,
              audit: audit({ to: goal }),
              signal
            }),
            (edited) => tell({ edited })
          )
        )
      })
  }
}
