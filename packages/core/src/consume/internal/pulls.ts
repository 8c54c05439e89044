/** Pulls that wait for a batch, and pulled batches that have not ended. Each of these has a lease. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Delay from "../../message/Delay.ts"
import type { Batch } from "../../message/Handler.ts"
import type { Call } from "../../policy/Acknowledgement.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Done, Outcome, Run } from "./runHandler.ts"
import type { Task } from "./task.ts"

/** Waiting pulls. The one that has waited longest gets the next batch. */
export interface Pulls<Batch> {
  /** Returns the number of waiting pulls. */
  readonly size: () => number
  /** Waits for a batch. Returns `undefined` if no message arrives within `millis`, or after {@link stop}. */
  readonly wait: (millis: number) => Effect.Effect<Batch | undefined>
  /** Passes a batch to the pull that has waited longest; there must be one. */
  readonly serve: (batch: Batch) => void
  /** Ends all pulls without a batch. */
  readonly stop: () => void
}

export interface Dependencies {
  readonly timers: Timers
  /** How long a batch may take to fill after its first message, in milliseconds. */
  readonly maxBatchTimeout: number
  /** Whether the first message of a batch has arrived. */
  readonly isFilling: () => boolean
  /** Called when a pull has begun to wait, or has ended. */
  readonly onChange: () => void
}

export const make = <Batch>({ isFilling, maxBatchTimeout, onChange, timers }: Dependencies): Pulls<Batch> => {
  const waiting: Array<(batch: Batch | undefined) => void> = []
  return {
    size: () => waiting.length,
    wait: (millis) =>
      Effect.callback((resume) => {
        const leave = (): void => {
          timers.cancel(timer)
          const index = waiting.indexOf(take)
          if (index >= 0) waiting.splice(index, 1)
          onChange()
        }
        const take = (batch: Batch | undefined): void => {
          leave()
          resume(Effect.succeed(batch))
        }
        const endEmpty = () => take(undefined)
        /** Ends the wait for the first message. If it has arrived, waits until the batch is due. */
        const onTimeout = (): void => {
          if (waiting[0] !== take || !isFilling()) return endEmpty()
          timer = timers.after(maxBatchTimeout, endEmpty)
        }
        let timer = timers.after(millis, onTimeout)
        waiting.push(take)
        onChange()
        return Effect.sync(leave)
      }),
    serve: (batch) => waiting.shift()!(batch),
    stop: () => {
      for (const take of waiting.splice(0)) take(undefined)
    }
  }
}

/**
 * A pulled batch. `ack`, `retry`, `ackAll` and `retryAll` work as in a handler. Call `settle`, `fail` or `release`
 * before the lease ends; only the first of these calls counts. After the end of the lease or the puller, a `settle` or
 * `fail` is ignored, and reported as an ignored call.
 */
export interface PulledBatch<A> extends Batch<A> {
  /** Ends the batch as successful: acks the messages without a verdict. */
  readonly settle: () => void
  /** Ends the batch as failed: the policy retries or dead-letters the messages without a verdict. */
  readonly fail: (error: unknown) => void
  /** Returns the messages without a verdict to the queue, without counting an attempt if the broker supports that. */
  readonly release: () => void
}

/** The error of a pulled batch that was not settled within its lease. `lease` is in milliseconds. */
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
export const openBatches = (timers: Timers, lease: number, onEnd: () => void): OpenBatches => {
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
