/** The tools of a test, and their types. */
import type { Event, QueueDefinition } from "@requeue/core"
import type { Delay, Message, Metadata } from "@requeue/core/port"
import type * as MemoryOptions from "../../Options.ts"

/** The options of a broker for tests. */
export interface Options extends MemoryOptions.Options {
  /**
   * Milliseconds of real time that the promise of a handler is waited for before the clock moves on, for handlers that
   * do input and output. Default: 1,000.
   */
  readonly promiseTimeout?: number | undefined
}

/** An event of a message, in the words of core's events. `at` is in milliseconds since the test began. */
export type Happening = { readonly at: number } & (
  | { readonly _tag: "Sent"; readonly queue: string; readonly id: string; readonly delay: Delay.Delay }
  | Extract<
      Event.Event,
      { readonly _tag: "Received" | "Succeeded" | "RetryScheduled" | "DeadLettered" | "Dropped" | "Released" }
    >
)

/** A message that was sent. */
export interface Sent<A> {
  /** Milliseconds since the test began. */
  readonly at: number
  readonly id: string
  /** The bytes, where the queue's codec cannot decode them. */
  readonly body: A | Uint8Array
  readonly headers: Message.Headers
  readonly delay: Delay.Delay
}

/** A message that was given up. */
export interface DeadLetter<A> {
  /** Milliseconds since the test began. */
  readonly at: number
  /** The dead-letter queue that it lies in. */
  readonly queue: string
  /** The queue whose consumers gave it up. */
  readonly origin: string
  readonly id: string
  /** The bytes, where the queue's codec cannot decode them. */
  readonly body: A | Uint8Array
  readonly headers: Message.Headers
  readonly attempts: number
  readonly reason: Metadata.Reason
  /** The error of the last attempt, without its stack trace, so that tests can compare it. */
  readonly error: Metadata.ErrorSummary
  readonly history: ReadonlyArray<Metadata.Attempt>
}

/** How long `waitUntilIdle` waits. */
export interface IdleOptions {
  /** The longest time that the clock may be moved. Default: 30 days. */
  readonly within?: Delay.DurationInput | undefined
}

/** The body of a queue without a codec has the type that the test names. */
export type AnyBody = any // a test that names none reads the body without a cast

/** The tools, as promises. */
export interface Tools {
  /** Milliseconds since the test began. */
  readonly now: () => number
  /** Moves the clock. Whatever is due on the way happens in order and at its time; handlers are waited for. */
  readonly advance: (duration: Delay.DurationInput) => Promise<void>
  /**
   * Moves the clock until no consumer has a message left: none with a handler, none waiting, none delayed. Rejects with
   * those that are left when it takes longer than `within`.
   */
  readonly waitUntilIdle: (options?: IdleOptions) => Promise<void>
  /**
   * Rejects unless nothing has happened since the last call of `happened`, and no consumer has a message left. The
   * clock stands still.
   */
  readonly expectNothingElse: () => Promise<void>
  /** The events since the last call, in order. */
  readonly happened: () => ReadonlyArray<Happening>
  /** The messages that were sent to a queue, in order. Redrives are among them; retries and dead letters are not. */
  readonly sent: <A = AnyBody>(queue: QueueDefinition.Input<A, never>) => Promise<ReadonlyArray<Sent<A>>>
  /**
   * The dead letters in a dead-letter queue, by its own name, such as `orders.dlq`, oldest first. Rejects where there is no
   * such queue, or nothing makes it a dead-letter queue: no policy, no convention and no dead letter in it.
   */
  readonly deadLetters: <A = AnyBody>(queue: QueueDefinition.Input<A, never>) => Promise<ReadonlyArray<DeadLetter<A>>>
  /**
   * The dead letters of a queue, such as `orders`: all in each dead-letter queue that the policies of its consumers name, those of
   * `<queue>.dlq` without consumers. Each queue is oldest first. If queues share one, `origin` of a letter tells them apart. Rejects
   * if the queue does not exist.
   */
  readonly deadLettersOf: <A = AnyBody>(queue: QueueDefinition.Input<A, never>) => Promise<ReadonlyArray<DeadLetter<A>>>
  /** Moves the clock until the promise has settled, and settles as it does. For a drain, a pull, a slow redrive. */
  readonly finish: <A>(promise: Promise<A>) => Promise<A>
}
