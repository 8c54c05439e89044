/** Errors of brokers. They are never reported as failures of a handler. */
import * as Data from "effect/Data"
import type { ConfigurationError } from "../options/ConfigurationError.ts"

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
 * | `LeaseLost` | the delivery's lease has ended; the broker delivers the message again | no |
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

/** An operation that the broker refused, or whose answer never came. */
export class BrokerError extends Data.TaggedError("BrokerError")<{
  /** The broker's name, for example `memory`. */
  readonly broker: string
  /** The operation: `publish`, `subscribe`, `settle`, … */
  readonly operation: string
  readonly reason: Reason
  readonly queue?: string | undefined
  /** The problem, with the broker's own limit where there is one. */
  readonly detail: string
  /** How to solve it. */
  readonly remedy?: string | undefined
  /** The driver's own error. */
  readonly cause?: unknown
}> {
  override get message() {
    const at = this.queue === undefined ? "" : ` on queue ${this.queue}`
    const remedy = this.remedy === undefined ? "" : `. ${this.remedy}`
    return `${this.broker}: ${this.operation}${at}: ${this.reason}: ${this.detail}${remedy}`
  }

  /** Whether the same operation may succeed later. */
  get isRetryable(): boolean {
    return retryable.has(this.reason)
  }
}

/** The error of a plan as a broker's error, for functions that fail with nothing else. */
export const ofPlan = (broker: string, { detail, field, queue, remedy }: ConfigurationError): BrokerError =>
  new BrokerError({ broker, operation: "plan", queue, reason: "Unsupported", detail: `${field}: ${detail}`, remedy })
