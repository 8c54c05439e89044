/** Errors of brokers. They are never reported as failures of a handler. */
import * as Data from "effect/Data"
import type { ConfigurationError } from "../options/ConfigurationError.ts"
import { quoted } from "../options/quoted.ts"

/**
 * Why an operation failed, and whether the same operation may succeed later.
 *
 * | reason | meaning | retryable |
 * | --- | --- | --- |
 * | `ConnectionFailed` | no connection could be made | yes |
 * | `ConnectionLost` | the connection broke; the outcome of operations under way is unknown | yes |
 * | `Timeout` | the broker did not answer in time; the outcome is unknown | yes |
 * | `Throttled` | the broker is overloaded or blocks publishers | yes |
 * | `QueueFull` | the queue is at its limit | yes |
 * | `LeaseLost` | the delivery's lease has ended; the broker redelivers the message | no |
 * | `AccessRefused` | wrong credentials or missing permission | no |
 * | `QueueMissing` | the queue does not exist and must not be created | no |
 * | `QueueMismatch` | the queue exists with other settings | no |
 * | `Unroutable` | no queue is bound where the message was sent | no |
 * | `BodyTooLarge` | the message is larger than the broker's limit | no |
 * | `Unsupported` | the broker cannot do this | no |
 */
export type Reason =
  | "ConnectionFailed"
  | "ConnectionLost"
  | "Timeout"
  | "Throttled"
  | "QueueFull"
  | "LeaseLost"
  | "AccessRefused"
  | "QueueMissing"
  | "QueueMismatch"
  | "Unroutable"
  | "BodyTooLarge"
  | "Unsupported"

const retryable: ReadonlySet<Reason> = new Set([
  "ConnectionFailed",
  "ConnectionLost",
  "Timeout",
  "Throttled",
  "QueueFull"
])

/** The reasons that leave open whether the operation was done. */
const doubtful: ReadonlySet<Reason> = new Set(["ConnectionLost", "Timeout"])

/** The outcome of one message of a batch. Only a `failed` message can be resent without risk of a duplicate. */
export interface Entry {
  /** The message's id; `undefined` in an error that an adapter has made. */
  readonly id?: string | undefined
  readonly status: "sent" | "failed" | "unknown"
  /** Why the message is not `sent`. */
  readonly error?: BrokerError | undefined
}

/** The error of an operation that the broker refused or did not answer. */
export class BrokerError extends Data.TaggedError("BrokerError")<{
  /** The broker's name, for example `memory`. */
  readonly broker: string
  /** The operation: `publish`, `subscribe`, `settle`, … */
  readonly operation: string
  readonly reason: Reason
  readonly queue?: string | undefined
  /** The problem, with the broker's limit if there is one. */
  readonly detail: string
  /** How to solve the problem. */
  readonly remedy?: string | undefined
  /**
   * Of a failed connection: whether only a change of the configuration helps, for example because a certificate is not
   * trusted. `connect` then does not wait for the broker. Default: `false`.
   */
  readonly isMisconfigured?: boolean | undefined
  /** The driver's own error. */
  readonly cause?: unknown
  /** Of a publish: the outcome of each message, in order. Default: the error applies to all of them. */
  readonly entries?: ReadonlyArray<Entry> | undefined
}> {
  override get message() {
    const at = this.queue === undefined ? "" : ` on queue ${quoted(this.queue)}`
    const remedy = this.remedy === undefined ? "" : `. ${this.remedy}`
    const operation = this.operation === "counts" ? "counting messages" : this.operation
    return `${this.broker}: ${operation}${at}: ${this.reason}: ${this.detail}${remedy}`
  }

  /** Whether the same operation may succeed later. */
  get isRetryable(): boolean {
    return retryable.has(this.reason)
  }
}

/**
 * Whether an operation that failed with this error may have been done.
 *
 * When to use: in an adapter, before it repeats an operation that must not happen twice.
 */
export const isDoubtful = ({ reason }: BrokerError): boolean => doubtful.has(reason)

/**
 * Returns the error of an operation that was tried twice; `undefined` if the second try succeeded. If both failed and
 * the outcome of the first is unknown, it returns the first error.
 */
export const ofRepetition = (
  first: BrokerError | undefined,
  second: BrokerError | undefined
): BrokerError | undefined => (first !== undefined && second !== undefined && isDoubtful(first) ? first : second)

/** The outcome of a message whose publish ended with this error; `undefined`: it was confirmed. */
const entryOf = (error: BrokerError | undefined): Entry =>
  error === undefined ? { status: "sent" } : { status: isDoubtful(error) ? "unknown" : "failed", error }

const withEntries = (error: BrokerError, entries: ReadonlyArray<Entry>): BrokerError => {
  const { broker, cause, detail, operation, queue, reason, remedy } = error
  return new BrokerError({ broker, operation, reason, queue, detail, remedy, cause, entries })
}

/**
 * Returns the error of a publish: the first error of its messages, with an entry for each message. `errors` has the
 * error of each message in order, or `undefined` if the message was confirmed. Returns `undefined` if all were
 * confirmed.
 *
 * When to use: in an adapter, for the error of `publish`.
 *
 * @example
 * ```ts
 * import { BrokerError } from "@requeue/core"
 *
 * const full = new BrokerError.BrokerError({ broker: "mine", operation: "publish", reason: "QueueFull", detail: "it is full" })
 * BrokerError.ofBatch([undefined, full])?.entries?.map(({ status }) => status) // => ["sent", "failed"]
 * ```
 */
export const ofBatch = (errors: ReadonlyArray<BrokerError | undefined>): BrokerError | undefined => {
  const first = errors.find((error) => error !== undefined)
  return first === undefined || errors.length === 1 ? first : withEntries(first, errors.map(entryOf))
}

/** Returns the error of a batch with an entry for each id, even if the adapter's error has no entries. */
export const withIds = (error: BrokerError, ids: ReadonlyArray<string>): BrokerError => {
  const { entries } = error
  const given = entries?.length === ids.length ? entries : undefined
  return withEntries(
    error,
    ids.map((id, index) => ({ ...(given?.[index] ?? entryOf(error)), id }))
  )
}

/** Turns the error of a plan into a `BrokerError`. */
export const ofPlan = (broker: string, { detail, field, queue, remedy }: ConfigurationError): BrokerError =>
  new BrokerError({ broker, operation: "plan", queue, reason: "Unsupported", detail: `${field}: ${detail}`, remedy })

/** Returns the error of a call that needs the capability `transactions`. `broker` is the broker's name. */
export const withoutTransactions = (broker: string, queue?: string): BrokerError =>
  new BrokerError({
    broker,
    operation: "within",
    queue,
    reason: "Unsupported",
    detail: "this broker has no transactions",
    remedy: "Connect with the option store, use PostgreSQL or SQLite, or make the handler idempotent and ack as usual"
  })
