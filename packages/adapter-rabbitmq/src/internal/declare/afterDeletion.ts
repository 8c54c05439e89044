/** The pause before something is declared that somebody has deleted. */
import * as Effect from "effect/Effect"

/**
 * RabbitMQ 3.10 does not tell a consumer that its quorum queue was deleted when the queue is declared within some 15 ms of
 * that: the new queue gives that consumer messages, which never arrive.
 */
export const afterDeletion = Effect.sleep("100 millis")
