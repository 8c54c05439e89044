import * as Data from "effect/Data"

/** The error of wrong arguments, or of arguments that do not go together. */
export class UsageError extends Data.TaggedError("UsageError")<{
  readonly detail: string
  readonly remedy: string
}> {
  override get message() {
    return `${this.detail}. ${this.remedy}`
  }
}
