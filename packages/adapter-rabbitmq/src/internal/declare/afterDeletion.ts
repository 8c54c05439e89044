/** The pause before a deleted queue is declared again. */
import * as Effect from "effect/Effect"

/**
 * If a quorum queue is declared within about 15 ms of its deletion, RabbitMQ 3.10 does not report the deletion to its consumer.
 * The new queue then sends that consumer messages that never arrive.
 */
export const afterDeletion = Effect.sleep("100 millis")
