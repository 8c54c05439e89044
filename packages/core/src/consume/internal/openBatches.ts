/** Pulled batches that have not ended. Each has a lease. */
import * as Data from "effect/Data"
import * as Delay from "../../message/Delay.ts"
import type { Batch } from "../../message/Handler.ts"
import type { Call } from "../../policy/Acknowledgement.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Done, Outcome, Run } from "./runHandler.ts"
import type { Task } from "./task.ts"

/**
 * A pulled batch. `ack`, `retry`, `ackAll` and `retryAll` work as in a handler. Call `settle`, `fail` or `release` before
 * the lease ends; only the first of these calls counts. A `settle` or `fail` after the lease or the puller has ended the
 * batch is reported as an ignored call.
 */
export interface PulledBatch<A> extends Batch<A> {
  /** Ends the batch as successful: acks the messages without a verdict. */
  readonly settle: () => void
  /** Ends the batch as failed: the policy retries or dead-letters the messages without a verdict. */
  readonly fail: (error: unknown) => void
  /** Returns the messages without a verdict to the queue, without counting an attempt if the broker supports that. */
  readonly release: () => void
}

/** The error of a pulled batch that did not end within its lease. `lease` is in milliseconds. */
export class LeaseExpired extends Data.TaggedError("LeaseExpired")<{ readonly lease: number }> {
  override get message() {
    return `lease: the pulled batch was not settled within ${Delay.format(this.lease)}`
  }
}

export interface OpenBatches {
  readonly size: () => number
  /** Opens a batch of a task's messages. Calls `done` once, with its outcome. */
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
      /** `call` is the equivalent call on the batch, which the ended task reports as ignored. */
      const endOrIgnore = (outcome: Outcome, call: Call): void => {
        if (endedBy === "other") task.record(call)
        else end("caller", outcome)
      }
      const timer = timers.after(lease, () => end("other", { _tag: "Failed", error: new LeaseExpired({ lease }) }))
      size++
      const batch: PulledBatch<unknown> = {
        ...task.toBatch(),
        settle: () => endOrIgnore({ _tag: "Succeeded" }, { _tag: "AckAll" }),
        fail: (error) => endOrIgnore({ _tag: "Failed", error }, { _tag: "RetryAll" }),
        release: () => end("caller", { _tag: "Interrupted" })
      }
      return { batch, interrupt: () => end("other", { _tag: "Interrupted" }) }
    }
  }
}
