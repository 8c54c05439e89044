/** Pulls that wait for a batch. The one that has waited longest gets the next. */
import * as Effect from "effect/Effect"
import type { Timers } from "../../runtime/Timers.ts"

export interface Pulls<Batch> {
  /** Number of pulls that wait. */
  readonly size: () => number
  /**
   * Waits for a batch. Succeeds with `undefined` when no first message comes within `millis`, or after {@link stop}.
   */
  readonly wait: (millis: number) => Effect.Effect<Batch | undefined>
  /** Gives a batch to the pull that has waited longest; there must be one. */
  readonly serve: (batch: Batch) => void
  /** Ends all pulls without a batch. */
  readonly stop: () => void
}

export interface Dependencies {
  readonly timers: Timers
  /** Milliseconds that a batch may take to fill, once its first message has come. */
  readonly maxBatchTimeout: number
  /** Whether the first message of a batch has come. */
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
        const giveUp = () => take(undefined)
        /** The pull waits for a first message. Once that has come, its batch may take its own time to fill. */
        const onTimeout = (): void => {
          if (waiting[0] !== take || !isFilling()) return giveUp()
          timer = timers.after(maxBatchTimeout, giveUp)
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
