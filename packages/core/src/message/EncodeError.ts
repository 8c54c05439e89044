/** A message that cannot be sent as it is. Raised before anything is sent. */
import * as Data from "effect/Data"

export class EncodeError extends Data.TaggedError("EncodeError")<{
  readonly queue: string
  /** `body`, `id` or `headers`. */
  readonly field: string
  readonly detail: string
  readonly remedy: string
  readonly cause?: unknown
}> {
  override get message() {
    return `send to queue ${this.queue}: ${this.field}: ${this.detail}. ${this.remedy}`
  }
}
