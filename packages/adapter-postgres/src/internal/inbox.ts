/** The inbox: the messages of other brokers that transactions of programs have done. */
import type { BrokerError, Inbox } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Add } from "./connect/gather.ts"
import type { Store } from "./connect/store.ts"
import * as Within from "./connect/within.ts"

/** The most messages of one statement. */
const maxRead = 500

interface Name {
  readonly queue: string
  readonly id: string
}

const added =
  (add: Add<Name, boolean>) =>
  (name: Name): Effect.Effect<boolean, BrokerError.BrokerError> =>
    Effect.callback((resume) =>
      add(name, 1, { operation: "settle", queue: name.queue }, (error, isRecorded) =>
        resume(error === undefined ? Effect.succeed(isRecorded === true) : Effect.fail(error))
      )
    )

export const make = (store: Store): Inbox.Inbox => {
  const { gather, lanes, read, statements } = store
  const isRecorded = added(
    gather(lanes.settle, maxRead, async (session, names) => {
      const values = [names.map(({ queue }) => queue), names.map(({ id }) => id)]
      const rows = await session.query(statements.recorded, values)
      return rows.map(([found]) => found === true)
    })
  )

  return {
    record: (transaction, queue, ids) =>
      Effect.gen(function* () {
        const run = yield* Within.open(transaction, { operation: "within", queue }, store)
        const fresh = new Set(yield* Effect.map(run(statements.record, [queue, JSON.stringify(ids)]), column))
        return ids.filter((id) => !fresh.has(id))
      }),
    recorded: (queue, ids) =>
      Effect.map(
        Effect.forEach(ids, (id) => isRecorded({ queue, id }), { concurrency: "unbounded" }),
        (found) => ids.filter((_, index) => found[index])
      ),
    prune: (age, limit) =>
      read({ operation: "prune" }, async (session) => (await session.query(statements.prune, [age, limit])).length)
  }
}

const column = (rows: ReadonlyArray<ReadonlyArray<unknown>>): ReadonlyArray<string> => rows.map(([id]) => String(id))
