/** Pulls that wait for a batch. The one that has waited longest gets the next batch. */
import * as Effect from "effect/Effect"
import type { Timers } from "../../runtime/Timers.ts"

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
