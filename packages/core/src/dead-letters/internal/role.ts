/**
 * Calls on dead letters name the queue that has them. One that nothing makes a dead-letter queue is refused: a purge of
 * `orders` that meant `orders.dlq` would empty the live queue.
 */
import * as Effect from "effect/Effect"
import type { Delivery } from "../../message/Delivery.ts"
import type { Service } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import * as Reading from "./reading.ts"

/** Messages that are looked at where neither a policy nor the name says what they are. */
const sample = 10

const refusal = ({ capabilities: { broker } }: Service, queue: string, operation: string, seen: string) =>
  new BrokerError({
    broker,
    operation,
    queue,
    reason: "QueueMismatch",
    detail: `nothing was done: no policy that is known here names it as a dead-letter queue, and it has ${seen}`,
    remedy: `For the dead letters of ${queue}, use deadLettersOf or --queue; to act on this very queue, confirm its name: { force: ${JSON.stringify(queue)} } or --force ${queue}`
  })

/** Fails where nothing makes it a dead-letter queue: no policy, no convention and no metadata. */
export const check = (broker: Service, queue: string, operation: string): Effect.Effect<void, BrokerError> =>
  Effect.gen(function* () {
    let [letters, others] = [0, 0]
    const reading = Reading.open(broker, queue, { limit: sample })
    // Another tool may have moved a letter back to its own queue as it is: there it is none any more.
    const visit = ({ metadata: { deadLetter } }: Delivery) =>
      void (deadLetter === undefined || deadLetter.queue === queue ? others++ : letters++)
    yield* Effect.scoped(Effect.flatMap(reading, (opened) => Reading.each(opened, visit)))
    if (others > 0) return yield* refusal(broker, queue, operation, "messages that are not dead letters")
    if (letters === 0) return yield* refusal(broker, queue, operation, "no dead letters that would show it")
  })
