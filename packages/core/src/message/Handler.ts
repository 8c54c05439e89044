/** Handlers: the messages that they receive, and the calls by which they ack and retry them. */
import type * as Effect from "effect/Effect"
import type { DurationInput } from "./Delay.ts"
import type { Message } from "./Message.ts"

/** Options of `retry` and `retryAll`. */
export interface RetryOptions {
  /**
   * Time until the next delivery, 0 to 24 hours; a number counts milliseconds. An explicit 0 is a delay like any other.
   * Default: the policy's delay.
   */
  readonly delay?: DurationInput | undefined
  /** Whether this retry counts towards consumer backoff. Default: true. */
  readonly backoff?: boolean | undefined
}

/**
 * A message that a handler has received.
 *
 * The first call decides (see `Acknowledgement`); a later one is ignored and logged once. A handler that calls nothing
 * acks when it succeeds and retries when it fails.
 *
 * The methods and `native` belong to the message: call them on the message itself. A copy by spread, `Object.assign` or
 * `structuredClone` has only its data, and a method that is taken off the message throws a `TypeError`.
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
  /** Acks the message, whatever happens to the rest of its batch. The broker is told at once. */
  ack(): void
  /**
   * Asks for another delivery. On the last allowed attempt the message is dead-lettered instead.
   *
   * @throws InvalidDelay when the delay is not 0 to 24 hours, or beyond what the broker can honour
   */
  retry(options?: RetryOptions): void
  /**
   * Says that this message has failed with this error, as if a handler of its own had thrown it: its classification, its
   * `permanent` and its `retryAfter` count. Otherwise it is a call like `retry`.
   *
   * @throws InvalidDelay when the delay is not 0 to 24 hours, or beyond what the broker can honour
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
}

/** The messages of one run of a batch handler. */
export interface Batch<A> {
  /** The queue's name. */
  readonly queue: string
  /** The messages, at least one, in the order in which they arrived. */
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

/** The second argument of every handler. */
export interface Context {
  /** Aborted when `handlerTimeout` has passed, or when the deadline of a shutdown has. */
  readonly signal: AbortSignal
}

/** A handler's return value: an Effect, a promise, or nothing. Only its success or failure counts, not its value. */
export type Result<R = never> = Effect.Effect<unknown, unknown, R> | PromiseLike<unknown> | void

/** A handler of single messages. */
export type MessageHandler<A, R = never> = (message: Received<A>, context: Context) => Result<R>

/** A handler of batches. */
export type BatchHandler<A, R = never> = (batch: Batch<A>, context: Context) => Result<R>
