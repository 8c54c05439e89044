/** Acks in a program's transaction: a fenced delete. Its commit wakes the consumers of the next messages of keys. */
import type { Broker } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { payloads } from "../connect/notifier.ts"
import type { Store } from "../connect/store.ts"
import * as Within from "../connect/within.ts"
import { receiptOf } from "../consume/receipt.ts"
import { errors } from "../toBrokerError.ts"

/** Returns the `ackWithin` of a consumer. */
export const make =
  (queue: string, store: Store): NonNullable<Broker.Subscription["ackWithin"]> =>
  (transaction, deliveries) =>
    Effect.gen(function* () {
      const context = { operation: "within", queue }
      const run = yield* Within.open(transaction, context, store)
      const handles = deliveries.map(receiptOf).map(({ seq, token }) => ({ seq, token }))
      const removed = yield* run(store.statements.ack, [JSON.stringify(handles)])
      if (removed.length < deliveries.length) return yield* errors.leaseLost(context)
      const lanes = new Set(deliveries.map((delivery) => receiptOf(delivery).lane))
      const news = [...lanes].flatMap((lane) => (lane === undefined ? [] : [[lane, Number(removed[0]?.[1])] as const]))
      if (!store.settings.notify) return []
      for (const payload of payloads(news)) yield* run(store.statements.notifyWithin, [store.settings.schema, payload])
      return []
    })
