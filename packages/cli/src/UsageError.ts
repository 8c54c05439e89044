import * as Data from "effect/Data"

/** The error of arguments that are wrong or do not go together. */
export class UsageError extends Data.TaggedError("UsageError")<{
  readonly detail: string
  readonly remedy: string
}> {
  override get message() {
    return `${this.detail}. ${this.remedy}`
  }
}
