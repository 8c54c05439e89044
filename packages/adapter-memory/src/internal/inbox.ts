/** The inbox: the messages of other brokers that a transaction has done, for as long as the broker lives. */
import type { Inbox } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { failure } from "./settle/settle.ts"
import * as Transaction from "./transaction.ts"

const keyOf = (queue: string, id: string): string => `${queue}\0${id}`

export const make = (now: () => number): Inbox.Inbox => {
  /** When each message was recorded, oldest first. */
  const recorded = new Map<string, number>()
  const known = (queue: string, ids: ReadonlyArray<string>) => ids.filter((id) => recorded.has(keyOf(queue, id)))
  /** The messages that each open transaction records. */
  const pending = new WeakMap<Transaction.Changes, Set<string>>()

  return {
    record: (transaction, queue, ids) =>
      Effect.suspend(() => {
        const changes = Transaction.open(transaction)
        if (!(changes instanceof Transaction.Changes)) return Effect.fail(changes)
        const own = pending.get(changes) ?? new Set()
        pending.set(changes, own)
        const before = ids.filter((id) => own.has(keyOf(queue, id)) || recorded.has(keyOf(queue, id)))
        const fresh = ids.filter((id) => !before.includes(id))
        for (const id of fresh) own.add(keyOf(queue, id))
        changes.add({
          // It locks nothing, so another transaction may have recorded one meanwhile.
          refusal: () =>
            known(queue, fresh).length === 0
              ? undefined
              : failure("within", queue, "LeaseLost", "another transaction has done the message"),
          make: () => fresh.forEach((id) => recorded.set(keyOf(queue, id), now()))
        })
        return Effect.succeed(before)
      }),
    recorded: (queue, ids) => Effect.sync(() => known(queue, ids)),
    prune: (age, limit) =>
      Effect.sync(() => {
        const old = [...recorded].filter(([, at]) => at < now() - age).slice(0, limit)
        for (const [key] of old) recorded.delete(key)
        return old.length
      })
  }
}
