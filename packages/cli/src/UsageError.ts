/** Arguments that do not go together. */
import * as Data from "effect/Data"

export class UsageError extends Data.TaggedError("UsageError")<{
  readonly detail: string
  readonly remedy: string
}> {
  override get message() {
    return `${this.detail}. ${this.remedy}`
  }
}
