/** Batches that were pulled and have not ended. Each of them has a lease. */
import * as Data from "effect/Data"
import * as Delay from "../../message/Delay.ts"
import type { Batch } from "../../message/Handler.ts"
import type { Call } from "../../policy/Acknowledgement.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Done, Outcome, Run } from "./runHandler.ts"
import type { Task } from "./task.ts"

/**
 * A batch that was pulled. `ack`, `retry`, `ackAll` and `retryAll` work as in a handler; one of `settle`, `fail` and
 * `release` must follow before the lease ends. The first of these decides, later ones do nothing. A `settle` or `fail` that
 * comes when the lease or the puller has ended the batch is told as a call that came too late.
 */
export interface PulledBatch<A> extends Batch<A> {
  /** Ends the batch well: messages without a verdict are acked. */
  readonly settle: () => void
  /**
   * Ends the batch badly: messages without a verdict are retried, or dead-lettered, as the error and the policy say.
   */
  readonly fail: (error: unknown) => void
  /** Ends the batch untouched: messages without a verdict go back to the queue, uncounted where the broker can. */
  readonly release: () => void
}

/** The error that a pulled batch fails with when it has not ended within its lease. `lease` is in milliseconds. */
export class LeaseExpired extends Data.TaggedError("LeaseExpired")<{ readonly lease: number }> {
  override get message() {
    return `lease: the pulled batch was not settled within ${Delay.format(this.lease)}`
  }
}

export interface OpenBatches {
  readonly size: () => number
  /** Opens a batch of a task's messages. `done` is called with its outcome, exactly once. */
  readonly open: (task: Task, done: Done<Task>) => Run & { readonly batch: PulledBatch<unknown> }
}

/** `lease` is in milliseconds. `onEnd` is called when a batch has ended. */
export const make = (timers: Timers, lease: number, onEnd: () => void): OpenBatches => {
  let size = 0
  return {
    size: () => size,
    open: (task, done) => {
      let endedBy: "caller" | "other" | undefined
      const end = (by: "caller" | "other", outcome: Outcome): void => {
        if (endedBy !== undefined) return
        endedBy = by
        timers.cancel(timer)
        size--
        done(task, outcome)
        onEnd()
      }
      /** `call` is what it amounts to on the batch: the task has ended by then, and tells of it. */
      const endOrTell = (outcome: Outcome, call: Call): void => {
        if (endedBy === "other") task.record(call)
        else end("caller", outcome)
      }
      const timer = timers.after(lease, () => end("other", { _tag: "Failed", error: new LeaseExpired({ lease }) }))
      size++
      const batch: PulledBatch<unknown> = {
        ...task.toBatch(),
        settle: () => endOrTell({ _tag: "Succeeded" }, { _tag: "AckAll" }),
        fail: (error) => endOrTell({ _tag: "Failed", error }, { _tag: "RetryAll" }),
        release: () => end("caller", { _tag: "Interrupted" })
      }
      return { batch, interrupt: () => end("other", { _tag: "Interrupted" }) }
    }
  }
}
