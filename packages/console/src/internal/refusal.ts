import * as Data from "effect/Data"

/** A request that is not served, with its HTTP status. */
export class Refusal extends Data.TaggedError("Refusal")<{
  readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 421 | 429 | 502 | 503
  readonly detail: string
  readonly remedy: string
  /** Further headers of the response, as `www-authenticate`. */
  readonly headers?: Readonly<Record<string, string>>
}> {
  override get message() {
    return `${this.detail}. ${this.remedy}`
  }
}
