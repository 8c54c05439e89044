/** A configuration that cannot work. Raised when a consumer or producer is built, never at message time. */
import * as Data from "effect/Data"

export class ConfigurationError extends Data.TaggedError("ConfigurationError")<{
  /** The field of the policy or option, for example `retry.backoff`. */
  readonly field: string
  /** What is wrong, with the limit. */
  readonly detail: string
  /** What to do about it. */
  readonly remedy: string
  readonly broker?: string | undefined
  readonly queue?: string | undefined
}> {
  override get message() {
    const where = [this.queue && `queue ${this.queue}`, this.broker && `broker ${this.broker}`].filter(Boolean)
    return `${this.field}${where.length === 0 ? "" : ` (${where.join(", ")})`}: ${this.detail}. ${this.remedy}`
  }
}
