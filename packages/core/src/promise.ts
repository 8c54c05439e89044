/** What a program without Effect imports: `@requeue/core/promise`. */
export { constant, exponential, linear, sequence, switchAfter } from "./Backoff.ts"
export { BrokerError } from "./BrokerError.ts"
export { bytes, json, standard, text } from "./Codec.ts"
export { ConfigurationError } from "./ConfigurationError.ts"
export { DeadLetterBudgetExhausted, make as deadLetterBudget } from "./DeadLetterBudget.ts"
export type { DeadLetter, Group, RedriveOptions, RedriveReport } from "./DeadLetters.ts"
export { InvalidDelay } from "./Delay.ts"
export { EncodeError } from "./EncodeError.ts"
export type { Event } from "./Event.ts"
export { DropError, HandlerTimeout, PermanentError, RetryLaterError } from "./Failure.ts"
export type { Batch, Context, Received, RetryOptions } from "./Handler.ts"
export { LeaseExpired, PullerDrained, type PulledBatch, type PullOptions } from "./Puller.ts"
export type { Headers, Message } from "./Message.ts"
export { type ConsumerHealth, type Health, isLive, isReady } from "./Health.ts"
export { make as queue } from "./QueueDefinition.ts"
export {
  connect,
  ConnectionClosed,
  type ConnectOptions,
  type ConsumeOptions,
  describe,
  type DeadLetterQueue,
  type PullerOptions,
  type PullWorker,
  type Requeue,
  type Worker
} from "./Requeue.ts"
export { cloudflareQueues, make as retryPolicy, nsqRequeue, rabbitMqGrowing, webhookSender } from "./RetryPolicy.ts"
