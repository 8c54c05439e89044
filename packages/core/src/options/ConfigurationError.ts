/** The error of a configuration that cannot work. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { quoted } from "./quoted.ts"

/**
 * The error of a configuration that cannot work. It is found when a consumer or producer is built, never when a message
 * arrives.
 */
export class ConfigurationError extends Data.TaggedError("ConfigurationError")<{
  /** The wrong option or field of a policy, for example `retry.backoff`. */
  readonly field: string
  /** The problem, with the limit. */
  readonly detail: string
  /** How to solve the problem. */
  readonly remedy: string
  readonly broker?: string | undefined
  readonly queue?: string | undefined
  /** The error that caused this one, for example the error of an import. */
  readonly cause?: unknown
}> {
  override get message() {
    const where = [this.queue && `queue ${quoted(this.queue)}`, this.broker && `broker ${this.broker}`].filter(Boolean)
    return `${this.field}${where.length === 0 ? "" : ` (${where.join(", ")})`}: ${this.detail}. ${this.remedy}`
  }
}

/** Returns an effect that fails if the value is a `ConfigurationError`, and otherwise succeeds with the value. */
export const orFail = <A>(value: A | ConfigurationError): Effect.Effect<A, ConfigurationError> =>
  value instanceof ConfigurationError ? Effect.fail(value) : Effect.succeed(value)
