/** Publishes in a program's own transaction. */
import type { BrokerError, Outgoing } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type { Store } from "../connect/store.ts"
import * as Within from "../connect/within.ts"
import * as Rows from "../rows.ts"
import { errors, toBrokerError } from "../toBrokerError.ts"
import { chunksOf, refusal } from "./publisher.ts"

/** Throws for a message that must not create its queue, if that is missing. */
const checkQueues = (messages: ReadonlyArray<Outgoing.Outgoing>, { connected }: Store): void => {
  for (const { create, queue } of messages) {
    if (create === false && !Rows.exists(connected(), queue)) throw errors.queueMissing(queue)
  }
}

/** One placeholder for each row of a statement. */
const placeholders = (rows: ReadonlyArray<unknown>, placeholder: string): string => rows.map(() => placeholder).join()

export const publishWithin = (
  transaction: unknown,
  messages: ReadonlyArray<Outgoing.Outgoing>,
  store: Store,
  maxBodySize: number
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const context = { operation: "within", queue: messages[0]?.queue }
    for (const message of messages) {
      const error = refusal(message, maxBodySize)
      if (error !== undefined) return yield* error
    }
    const run = yield* Within.open(transaction, context, store)
    yield* Effect.try({ try: () => checkQueues(messages, store), catch: (cause) => toBrokerError(cause, context) })
    const queues = [...new Set(messages.map(({ queue }) => queue))]
    yield* run(
      `INSERT OR IGNORE INTO requeue_queue (name) VALUES ${placeholders(queues, "(?)")} RETURNING name`,
      queues
    )
    for (const chunk of chunksOf(messages)) {
      const now = store.now()
      const rows = chunk.map((message) => SqlMessage.toRow(message, now))
      yield* run(
        `${Rows.into}${placeholders(rows, Rows.placeholders)} RETURNING seq`,
        rows.flatMap((row) => Rows.valuesOf(row, now))
      )
    }
  })
