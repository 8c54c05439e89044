/**
 * Transactions of a database that has both your tables and your queues: what a handler writes, the messages that it sends and
 * the ack of its message are committed together, or not at all.
 *
 * Only effects in that database happen once. A handler can still run twice, so a call of another service can happen twice.
 *
 * When to use: {@link within} and `Producer.within` in an Effect; `message.within` and `requeue.within` in a promise.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Batch, Received } from "../message/Handler.ts"
import { quoted } from "../options/quoted.ts"
import { BrokerError } from "../port/BrokerError.ts"

const problems = {
  settled: "ack, retry or fail was called before. Call within first",
  enlisted:
    "within was called before in this run. To repeat a transaction, throw its error, and Requeue redelivers the message",
  late: "the run has ended. Await the transaction in the handler, and end it when the handler's signal is aborted"
} as const

/** The error of a message that `within` cannot ack. It rolls the transaction back. */
export class AlreadySettled extends Data.TaggedError("AlreadySettled")<{
  /** `message.within` or `batch.within`. */
  readonly call: string
  readonly queue: string
  /** The message's id. */
  readonly id: string
  /** `settled`: by a call on it. `enlisted`: by `within`. `late`: by the end of the run. */
  readonly by: keyof typeof problems
}> {
  override get message() {
    return `${this.call}: queue ${quoted(this.queue)}, message ${this.id}: ${problems[this.by]}`
  }
}

/**
 * The error of a message that a transaction has done already: the broker has redelivered it, or a batch has it twice. It rolls the
 * transaction back. Requeue then acks the message if it is done, and returns the others of its batch without using up an attempt.
 */
export class AlreadyDone extends Data.TaggedError("AlreadyDone")<{
  /** `message.within` or `batch.within`. */
  readonly call: string
  readonly queue: string
  /** The ids of the messages. */
  readonly ids: ReadonlyArray<string>
}> {
  override get message() {
    const [id, ...more] = this.ids
    const others = more.length === 0 ? "" : ` and ${more.length} more`
    return `${this.call}: queue ${quoted(this.queue)}, message ${id}${others}: a transaction has done it already. Let this error roll your transaction back: Requeue then acks the message`
  }
}

/** The failure of a message whose handler succeeded, but whose transaction was not committed. The message is redelivered. */
export class RolledBack extends Data.TaggedError("RolledBack") {
  override get message() {
    return "the handler succeeded, but the transaction of its ack was rolled back or never committed"
  }
}

/**
 * Acks a message, or all messages of a batch without a retry, in a transaction. The message is done if and only if the
 * transaction is committed.
 *
 * Fails if the broker has no transactions, if the message is already settled or done, or if its lease is lost.
 *
 * @example
 * ```ts
 * import { MemoryBroker, MemoryTransaction } from "@requeue/adapter-memory"
 * import { Consumer, Producer, Transaction } from "@requeue/core"
 * import { Deferred, Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const done = yield* Deferred.make<string>()
 *   const payments = yield* Producer.make("payments")
 *   const receipts = yield* Producer.make("receipts")
 *   yield* Consumer.start("payments", {}, (message) =>
 *     MemoryTransaction.runEffect((transaction) =>
 *       Effect.andThen(
 *         Transaction.within(message, transaction),
 *         receipts.within(transaction).send({ of: message.id })
 *       )
 *     )
 *   )
 *   yield* Consumer.start("receipts", {}, ({ body }) => Deferred.succeed(done, body.of))
 *   yield* payments.send({ amount: 5 }, { id: "p1" })
 *   return yield* Deferred.await(done)
 * }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
 *
 * await Effect.runPromise(program) // => "p1"
 * ```
 */
export const within = (
  received: Pick<Received<unknown> | Batch<unknown>, "within">,
  transaction: unknown
): Effect.Effect<void, AlreadyDone | AlreadySettled | BrokerError> =>
  Effect.tryPromise({ try: () => received.within(transaction), catch: (error) => error }).pipe(
    Effect.catch((error) => (isExpected(error) ? Effect.fail(error) : Effect.die(error)))
  )

const isExpected = (error: unknown): error is AlreadyDone | AlreadySettled | BrokerError =>
  error instanceof AlreadyDone || error instanceof AlreadySettled || error instanceof BrokerError
