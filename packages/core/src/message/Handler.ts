/** What a handler gets, and how it says what is to happen to its messages. */
import type * as Effect from "effect/Effect"
import type { Input } from "./Delay.ts"
import type { Message } from "./Message.ts"

export interface RetryOptions {
  /**
   * Time until the next delivery, 0 to 24 hours; a number counts milliseconds. Default: the policy's. An explicit 0 is
   * a delay like any other.
   */
  readonly delay?: Input | undefined
  /** False: this retry does not count towards consumer backoff. Default true. */
  readonly backoff?: boolean | undefined
}

/**
 * A message in a handler's hands.
 *
 * The first call decides (see `Acknowledgement`); a call that comes too late is ignored and logged once. A handler that
 * calls nothing acks by ending well and retries by failing.
 */
export interface Received<A> extends Message<A> {
  /** Done, whatever happens to the rest of the batch. Handed to the broker at once. */
  ack(): void
  /**
   * Deliver again. On the last allowed attempt the message is dead-lettered.
   *
   * @throws InvalidDelay when the delay is not 0 to 24 hours, or beyond what the broker can honour
   */
  retry(options?: RetryOptions): void
}

export interface Batch<A> {
  readonly queue: string
  /** At least one. */
  readonly messages: ReadonlyArray<Received<A>>
  /** Acks every message that has no verdict yet. */
  ackAll(): void
  /**
   * Retries every message that has no verdict yet.
   *
   * @throws InvalidDelay when the delay is not 0 to 24 hours, or beyond what the broker can honour
   */
  retryAll(options?: RetryOptions): void
}

export interface Context {
  /** Aborted when the handler's time is up, or when a shutdown can wait no longer. */
  readonly signal: AbortSignal
}

/** What a handler may return: an Effect, a promise, or nothing. Its value does not matter, only how it ends. */
export type Result<R = never> = Effect.Effect<unknown, unknown, R> | PromiseLike<unknown> | void

export type MessageHandler<A, R = never> = (message: Received<A>, context: Context) => Result<R>

export type BatchHandler<A, R = never> = (batch: Batch<A>, context: Context) => Result<R>
