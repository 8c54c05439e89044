/** The error of a message that cannot be sent as it is. */
import * as Data from "effect/Data"

/** A body, id or header that cannot be sent. `send` fails with it before anything is sent. */
export class EncodeError extends Data.TaggedError("EncodeError")<{
  readonly queue: string
  /** The part of the message: `body`, `id` or `headers`. */
  readonly field: string
  /** The problem, with the limit where there is one. */
  readonly detail: string
  /** How to solve it. */
  readonly remedy: string
  /** The codec's own error. */
  readonly cause?: unknown
}> {
  override get message() {
    return `send to queue ${this.queue}: ${this.field}: ${this.detail}. ${this.remedy}`
  }
}
