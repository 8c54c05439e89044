/**
 * Reports partial answers. The command prints which parts of a broker do not answer on standard error, and works on the
 * other parts.
 */
import type { BrokerError } from "@requeue/core"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { Output } from "./Output.ts"
import * as Printable from "./Printable.ts"
import { Problem } from "./Problem.ts"

/** Prints each part of the broker that does not answer once. The command fails if there are any. */
export const tell = Effect.fnUntraced(function* (missing: ReadonlyArray<BrokerError.BrokerError>) {
  if (missing.length === 0) return
  const { json } = yield* Output
  const each = new Map(missing.map((error) => [error.message, error]))
  for (const [message, { broker, queue, reason }] of each) {
    yield* Console.error(
      json
        ? Printable.json({ missing: { message, reason, broker, queue } })
        : `requeue: partial: ${Printable.text(message)}`
    )
  }
  return yield* new Problem()
})
