/** The tools of a test, and their types. */
import type { Event, QueueDefinition } from "@requeue/core"
import type { Delay, Message, Metadata } from "@requeue/core/port"
import type * as MemoryOptions from "../../Options.ts"

/** The options of a broker for tests. */
export interface Options extends MemoryOptions.Options {
  /**
   * How long to wait for the promise of a handler before the clock moves, in milliseconds of real time. For handlers that do
   * input and output. Default: 1,000.
   */
  readonly promiseTimeout?: number | undefined
}

/** An event of a message, named like core's events. `at` is in milliseconds since the test began. */
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
  /** The decoded body, or its bytes if the queue's codec cannot decode it. */
  readonly body: A | Uint8Array
  readonly headers: Message.Headers
  readonly delay: Delay.Delay
}

/** A dead-lettered message. */
export interface DeadLetter<A> {
  /** Milliseconds since the test began. */
  readonly at: number
  /** The dead-letter queue that has it. */
  readonly queue: string
  /** The queue whose consumer dead-lettered it. */
  readonly origin: string
  readonly id: string
  /** The decoded body, or its bytes if the queue's codec cannot decode it. */
  readonly body: A | Uint8Array
  readonly headers: Message.Headers
  readonly attempts: number
  readonly reason: Metadata.Reason
  /** The error of the last attempt, without its stack trace, which tests could not compare. */
  readonly error: Metadata.ErrorSummary
  readonly history: ReadonlyArray<Metadata.Attempt>
}

/** Options of `waitUntilIdle`. */
export interface IdleOptions {
  /** How far the clock may move, up to 3,650 days; a number counts milliseconds. Default: 30 days. */
  readonly within?: Delay.DurationInput | undefined
}

/** The type of bodies if the test names none. */
export type AnyBody = any // A test that names none reads the body without a cast.

/** The tools, as promises. */
export interface Tools {
  /** Returns milliseconds since the test began. */
  readonly now: () => number
  /** Moves the clock by a duration. Runs everything that becomes due, in order and at its time, and waits for handlers. */
  readonly advance: (duration: Delay.DurationInput) => Promise<void>
  /**
   * Moves the clock until no consumer has a message left, whether in flight, ready or delayed. Rejects with the remaining
   * messages if that takes longer than `within`.
   */
  readonly waitUntilIdle: (options?: IdleOptions) => Promise<void>
  /**
   * Rejects if an event has happened since the last call of `happened`, or if a consumer has a message left. Does not move
   * the clock.
   */
  readonly expectNothingElse: () => Promise<void>
  /** Returns the events since the last call, in order. */
  readonly happened: () => ReadonlyArray<Happening>
  /** Returns the messages that were sent to a queue, in order, including redrives but not retries and dead letters. */
  readonly sent: <A = AnyBody>(queue: QueueDefinition.Input<A, never>) => Promise<ReadonlyArray<Sent<A>>>
  /**
   * Returns the dead letters in a dead-letter queue, such as `orders.dlq`, oldest first. Rejects if the queue does not exist,
   * or is not a dead-letter queue by a policy, by its name or by its messages.
   */
  readonly deadLetters: <A = AnyBody>(queue: QueueDefinition.Input<A, never>) => Promise<ReadonlyArray<DeadLetter<A>>>
  /**
   * Returns the dead letters of a queue, such as `orders`: those in all dead-letter queues that the policies of its consumers
   * name, or in `<queue>.dlq` without consumers. Each dead-letter queue is oldest first. If queues share one, read `origin`.
   * Rejects if the queue does not exist.
   */
  readonly deadLettersOf: <A = AnyBody>(queue: QueueDefinition.Input<A, never>) => Promise<ReadonlyArray<DeadLetter<A>>>
  /** Moves the clock until the promise has settled, and settles as it does. For a drain, a pull or a slow redrive. */
  readonly finish: <A>(promise: Promise<A>) => Promise<A>
}
