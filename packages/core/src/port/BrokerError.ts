/** What a broker refused or lost. Never reported as a failure of the handler. */
import * as Data from "effect/Data"
import type { ConfigurationError } from "../options/ConfigurationError.ts"

/**
 * | reason | meaning | retryable |
 * | --- | --- | --- |
 * | `ConnectionFailed` | no connection could be made | yes |
 * | `ConnectionLost` | the connection broke; what was under way may or may not have happened | yes |
 * | `Timeout` | no answer in time; the outcome is unknown | yes |
 * | `Throttled` | the broker is overloaded or blocks publishers | yes |
 * | `QueueFull` | the queue is at its limit | yes |
 * | `LeaseLost` | the delivery is no longer ours; the broker delivers it again | no |
 * | `AccessRefused` | wrong credentials or missing permission | no |
 * | `QueueMissing` | the queue does not exist and may not be created | no |
 * | `QueueMismatch` | the queue exists with other settings | no |
 * | `Unroutable` | nothing is bound where the message was sent | no |
 * | `BodyTooLarge` | the message is over the broker's limit | no |
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

export class BrokerError extends Data.TaggedError("BrokerError")<{
  readonly broker: string
  /** What was tried: `publish`, `subscribe`, `settle`, … */
  readonly operation: string
  readonly reason: Reason
  readonly queue?: string | undefined
  /** What exactly went wrong, with the broker's own limit where there is one. */
  readonly detail: string
  /** What to do about it. */
  readonly remedy?: string | undefined
  readonly cause?: unknown
}> {
  override get message() {
    const at = this.queue === undefined ? "" : ` on queue ${this.queue}`
    const remedy = this.remedy === undefined ? "" : `. ${this.remedy}`
    return `${this.broker}: ${this.operation}${at}: ${this.reason}: ${this.detail}${remedy}`
  }

  /** True when the same operation may succeed later. */
  get isRetryable(): boolean {
    return retryable.has(this.reason)
  }
}

/** A plan's refusal, where only the broker's errors can be told. */
export const ofPlan = (broker: string, { detail, field, queue, remedy }: ConfigurationError): BrokerError =>
  new BrokerError({ broker, operation: "plan", queue, reason: "Unsupported", detail: `${field}: ${detail}`, remedy })
