import * as Data from "effect/Data"

/** The error of a request that the console refuses, with its HTTP status. */
export class Refusal extends Data.TaggedError("Refusal")<{
  readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 421 | 429 | 502 | 503
  readonly detail: string
  readonly remedy: string
  /** The name of the form field that is wrong. */
  readonly field?: string
  /** The id of the job that prevents the request. */
  readonly job?: string
  /** Further headers of the response, such as `www-authenticate`. */
  readonly headers?: Readonly<Record<string, string>>
}> {
  override get message() {
    return `${this.detail}. ${this.remedy}`
  }
}
