/** A worker that waits for messages does not end by itself. */
import type { Broker } from "@requeue/core/port"
import * as Effect from "effect/Effect"

/** The longest interval that Node takes, in milliseconds. */
const interval = 2 ** 31 - 1

const hold = Effect.acquireRelease(
  // oxlint-disable-next-line no-restricted-globals -- it tells no time, and Effect's Clock may be a test's
  Effect.sync(() => setInterval(() => {}, interval)),
  (timer) => Effect.sync(() => clearInterval(timer))
)

/** Keeps the process alive while a consumer is open, as the connection to any other broker does. */
export const keepAlive = (broker: Broker.Service): Broker.Service => ({
  ...broker,
  subscribe: (options) => Effect.andThen(hold, broker.subscribe(options))
})
