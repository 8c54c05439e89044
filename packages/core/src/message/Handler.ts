/** Handlers: the messages that they receive, and the calls by which they ack and retry them. */
import type * as Effect from "effect/Effect"
import type { DurationInput } from "./Delay.ts"
import type { Message } from "./Message.ts"

/** The options of `retry` and `retryAll`. */
export interface RetryOptions {
  /** Time until the next delivery, 0 (at once) to 24 hours; a number counts milliseconds. Default: the policy's delay. */
  readonly delay?: DurationInput | undefined
  /** Whether this retry counts towards consumer backoff. Default: true. */
  readonly backoff?: boolean | undefined
}

/**
 * A message that a handler has received.
 *
 * The first call decides (see `Acknowledgement`); later calls are ignored, and the first ignored call is logged.
 * Without a call, the message is acked when the handler succeeds and retried when it fails.
 *
 * Call the methods, and read `native`, on the message itself. A copy by spread, `Object.assign` or `structuredClone`
 * has only its data, and a detached method throws a `TypeError`.
 *
 * @example
 * ```ts
 * import type { Handler } from "@requeue/core"
 *
 * const handler = async (message: Handler.Received<{ url: string }>) => {
 *   const { status } = await fetch(message.body.url, { method: "POST" })
 *   if (status === 429) message.retry({ delay: "1 minute", backoff: false })
 * }
 * ```
 */
export interface Received<A> extends Message<A> {
  /** Acks the message at once, whatever happens to the rest of its batch. */
  ack(): void
  /**
   * Retries the message: the broker delivers it again. On the last allowed attempt, the message is dead-lettered
   * instead.
   *
   * @throws InvalidDelay when the delay is not 0 to 24 hours, or longer than the broker supports
   */
  retry(options?: RetryOptions): void
  /**
   * Treats the message as if its handler had thrown this error: the policy's `classify` and the error's `permanent` and
   * `retryAfter` apply. The options are those of `retry`.
   *
   * @throws InvalidDelay when the delay is not 0 to 24 hours, or longer than the broker supports
   *
   * @example
   * ```ts
   * import type { Handler } from "@requeue/core"
   * import { PermanentError } from "@requeue/core/promise"
   *
   * const handler = async ({ messages }: Handler.Batch<{ iban: string }>) => {
   *   for (const message of messages) {
   *     if (message.body.iban === "") message.fail(new PermanentError("no account"))
   *   }
   * }
   * ```
   */
  fail(error: unknown, options?: RetryOptions): void
  /**
   * Acks the message in a transaction of the database that has the queue: it is done if and only if the transaction is
   * committed. Call it once in a run, first, and await it. If the transaction is rolled back, the message is retried, even
   * when the handler succeeds.
   *
   * In a synchronous transaction it acts before it returns, and throws instead of rejecting. With Effect, use
   * `Transaction.within`.
   *
   * @throws AlreadySettled after another call on the message, and after the run; BrokerError when the broker has no
   * transactions, when the value is no open transaction, or when the lease is lost
   */
  within(transaction: unknown): Promise<void>
}

/** The messages of one run of a batch handler. */
export interface Batch<A> {
  readonly queue: string
  /** At least one message, in order of arrival. */
  readonly messages: ReadonlyArray<Received<A>>
  /** Acks every message without a verdict. */
  ackAll(): void
  /**
   * Retries every message without a verdict.
   *
   * @throws InvalidDelay when the delay is not 0 to 24 hours, or longer than the broker supports
   */
  retryAll(options?: RetryOptions): void
  /**
   * Acks every message that is not retried in a transaction, as {@link Received.within} does.
   *
   * @throws AlreadySettled if one of them was acked; BrokerError as {@link Received.within}
   */
  within(transaction: unknown): Promise<void>
}

/** The second argument of every handler. */
export interface Context {
  /** Aborted at `handlerTimeout`, or at the deadline of a shutdown. */
  readonly signal: AbortSignal
}

/**
 * A handler's return value: an Effect, a promise, or nothing. An Error that the handler or its promise returns counts
 * as thrown. Other values are ignored.
 */
export type Result<R = never> = Effect.Effect<unknown, unknown, R> | PromiseLike<unknown> | void

/** A handler of single messages. */
export type MessageHandler<A, R = never> = (message: Received<A>, context: Context) => Result<R>

/** A handler of batches. */
export type BatchHandler<A, R = never> = (batch: Batch<A>, context: Context) => Result<R>
