/** Publishes in a program's transaction. */
import type { BrokerError, Outgoing } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import * as Effect from "effect/Effect"
import { declare } from "../connect/declare.ts"
import { payloads } from "../connect/notifier.ts"
import type { Store } from "../connect/store.ts"
import * as Within from "../connect/within.ts"
import * as Rows from "../rows.ts"
import { errors } from "../toBrokerError.ts"
import type { Publisher } from "./publisher.ts"

export const publishWithin = (
  transaction: unknown,
  messages: ReadonlyArray<Outgoing.Outgoing>,
  store: Store,
  { problem }: Publisher
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { now, settings, statements } = store
    const context = { operation: "within", queue: messages[0]?.queue }
    const refused = problem(messages)
    if (refused !== undefined) return yield* refused
    const run = yield* Within.open(transaction, context, store)
    const rows = messages.map((message) => ({ ...SqlMessage.toRow(message, now()), create: false }))
    const creatable = new Set(messages.flatMap(({ create, queue }) => (create === false ? [] : [queue])))
    if (creatable.size > 0) yield* declare([...creatable], context, store)
    const targets = Rows.targets(rows)
    const results = yield* run(statements.publishWithin, Rows.published(rows, targets))
    const absent = [...targets.keys()].find((_, index) => Number(results[index]?.[0]) === 1)
    if (absent !== undefined) return yield* errors.queueMissing(absent)
    if (!settings.notify) return
    const news = [...targets.keys()].map((queue, index) => [queue, Number(results[index]![1])] as const)
    for (const payload of payloads(news)) yield* run(statements.notifyWithin, [settings.schema, payload])
  })
