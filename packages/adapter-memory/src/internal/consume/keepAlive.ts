/** Keeps the process of a worker alive while it waits for messages. */
import type { Broker } from "@requeue/core/port"
import * as Effect from "effect/Effect"

/** The longest interval that Node supports, in milliseconds. */
const interval = 2 ** 31 - 1

const hold = Effect.acquireRelease(
  // oxlint-disable-next-line no-restricted-globals -- it measures no time, and Effect's Clock may be virtual
  Effect.sync(() => setInterval(() => {}, interval)),
  (timer) => Effect.sync(() => clearInterval(timer))
)

/** Keeps the process alive while a consumer is open, as a network connection would. */
export const keepAlive = (broker: Broker.Service): Broker.Service => ({
  ...broker,
  subscribe: (options) => Effect.andThen(hold, broker.subscribe(options))
})
