/**
 * Retry, batch and dead-letter policies for message consumers, and the consumer that runs them on any broker.
 *
 * Each concept has one module. Programs without Effect use `@requeue/core/promise`, adapters `@requeue/core/port`.
 * `@requeue/core/schema` has the modules that need `effect/Schema`, which loads slowly.
 */
export * as Adapters from "./faces/Adapters.ts"
export * as Backoff from "./policy/Backoff.ts"
export * as BatchPolicy from "./policy/BatchPolicy.ts"
export * as Broker from "./port/Broker.ts"
export * as BrokerError from "./port/BrokerError.ts"
export * as Classifier from "./policy/Classifier.ts"
export * as Codec from "./message/Codec.ts"
export * as ConfigurationError from "./options/ConfigurationError.ts"
export * as Consumer from "./consume/Consumer.ts"
export * as ConsumerBackoff from "./policy/ConsumerBackoff.ts"
export * as DeadLetterBudget from "./policy/DeadLetterBudget.ts"
export * as Delay from "./message/Delay.ts"
export * as Delivery from "./message/Delivery.ts"
export * as EncodeError from "./message/EncodeError.ts"
export * as Event from "./observe/Event.ts"
export * as Failure from "./policy/Failure.ts"
export * as Handler from "./message/Handler.ts"
export * as Health from "./observe/Health.ts"
export * as InvalidBody from "./message/InvalidBody.ts"
export * as Jitter from "./policy/Jitter.ts"
export * as Message from "./message/Message.ts"
export * as Producer from "./produce/Producer.ts"
export * as Puller from "./consume/Puller.ts"
export * as QueueDefinition from "./message/QueueDefinition.ts"
export * as RateLimit from "./policy/RateLimit.ts"
export * as RetryPolicy from "./policy/RetryPolicy.ts"
export * as Transaction from "./consume/Transaction.ts"
export * as VirtualClock from "./runtime/VirtualClock.ts"
