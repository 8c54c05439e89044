/** The inbox: the messages of other brokers that transactions of programs have done. */
import type { Inbox } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Store } from "./connect/store.ts"
import * as Within from "./connect/within.ts"

export const make = (store: Store): Inbox.Inbox => ({
  record: (transaction, queue, ids) =>
    Effect.gen(function* () {
      const run = yield* Within.open(transaction, { operation: "within", queue }, store)
      const rows = yield* run(
        `INSERT INTO requeue_inbox (queue, id, at) SELECT ?, value, ? FROM json_each(?) WHERE true
         ON CONFLICT DO NOTHING RETURNING id`,
        [queue, Math.floor(store.now()), JSON.stringify(ids)]
      )
      const fresh = new Set(rows.map((row) => Object.values(row)[0]))
      return ids.filter((id) => !fresh.has(id))
    }),
  recorded: (queue, ids) =>
    store.read({ operation: "settle", queue }, ({ prepare }) =>
      prepare("SELECT id FROM requeue_inbox WHERE queue = ? AND id IN (SELECT value FROM json_each(?))")
        .all(queue, JSON.stringify(ids))
        .map(({ id }) => String(id))
    ),
  prune: (age, limit) =>
    Effect.callback((resume) => {
      let removed = 0
      store.add({
        operation: "prune",
        weight: limit,
        run: ({ prepare }) => {
          const old = "SELECT queue, id FROM requeue_inbox WHERE at < ? ORDER BY at LIMIT ?"
          removed = Number(
            prepare(`DELETE FROM requeue_inbox WHERE (queue, id) IN (${old})`).run(store.now() - age, limit).changes
          )
        },
        end: (error) => resume(error === undefined ? Effect.succeed(removed) : Effect.fail(error))
      })
    })
})
