/** The entry of programs without Effect: `@requeue/core/promise`. */
export { constant, exponential, linear, sequence, switchAfter } from "./policy/Backoff.ts"
export { BrokerError } from "./port/BrokerError.ts"
export { bytes, json, standard, text } from "./message/Codec.ts"
export { ConfigurationError } from "./options/ConfigurationError.ts"
export { deadLetterBudget, queue, retryPolicy } from "./faces/Constructors.ts"
export { DeadLetterBudgetExhausted } from "./policy/DeadLetterBudget.ts"
export { InvalidDelay } from "./message/Delay.ts"
export { EncodeError } from "./message/EncodeError.ts"
export type { Event } from "./observe/Event.ts"
export { InvalidBody, type Issue } from "./message/InvalidBody.ts"
export { DropError, HandlerTimeout, PermanentError, RetryLaterError } from "./policy/Failure.ts"
export type { Batch, Context, Received, RetryOptions } from "./message/Handler.ts"
export { LeaseExpired, PullerDrained, type PulledBatch, type PullOptions } from "./consume/Puller.ts"
export type { Headers, Message, Native } from "./message/Message.ts"
export type { LoggerLike } from "./observe/LoggerLike.ts"
export {
  type ConsumerHealth,
  degraded,
  type Degradation,
  type Health,
  isLive,
  isReady,
  type ReadyOptions
} from "./observe/Health.ts"
export {
  connect,
  ConnectionClosed,
  type ConnectOptions,
  type ConsumeOptions,
  type CountsOptions,
  describe,
  type PullerOptions,
  type PullWorker,
  type Requeue,
  type Runnable,
  type Transactional,
  type Worker
} from "./faces/Requeue.ts"
export { AlreadySettled, RolledBack } from "./consume/Transaction.ts"
export { cloudflareQueues, nsqRequeue, rabbitMqGrowing, webhookSender } from "./policy/RetryPolicy.ts"
