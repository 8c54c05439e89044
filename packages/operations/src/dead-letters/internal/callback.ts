/** Functions that a program passes to a redrive, park or purge, and their errors. */
import { Failure } from "@requeue/core"
import { Thenable } from "@requeue/core/port"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"

type Option = "filter" | "onProgress" | "watch"

/** A function among the options threw, which ends a redrive, park or purge. */
export class CallbackFailed extends Data.TaggedError("CallbackFailed")<{
  readonly queue: string
  /** The option whose function threw. */
  readonly option: Option
  /** The value that was thrown. */
  readonly cause: unknown
}> {
  readonly reason = "CallbackFailed"
  /** Whether another call may succeed: it may not, because the same function would throw again. */
  readonly isRetryable = false
  override get message() {
    const { name, message } = Failure.summarize(this.cause)
    return `The option ${this.option} threw ${name}: ${message}. Fix ${this.option}, then call it again to go on`
  }
}

/**
 * Wraps the errors of functions as {@link CallbackFailed}. If a function returns a promise that is rejected, the next call
 * of any function throws the error.
 */
export const guard = (queue: string) => {
  let rejected: CallbackFailed | undefined
  return <Args extends ReadonlyArray<unknown>, A>(option: Option, call: (...args: Args) => A) => {
    const failed = (cause: unknown) => new CallbackFailed({ queue, option, cause })
    return (...args: Args): A => {
      if (rejected !== undefined) throw rejected
      try {
        const answer = call(...args)
        Thenable.onRejected(answer, (cause) => (rejected = failed(cause)))
        return answer
      } catch (cause) {
        throw failed(cause)
      }
    }
  }
}

/** Fails with a {@link CallbackFailed} that was thrown. All other defects stay defects. */
export const caught = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | CallbackFailed, R> =>
  Effect.catchDefect(effect, (defect) => (defect instanceof CallbackFailed ? Effect.fail(defect) : Effect.die(defect)))
