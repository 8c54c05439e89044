/** Alarms: one timer for many requests. */
import type { Timer, Timers } from "./Timers.ts"

/** Wakes at the earliest requested time, perhaps without work to do. */
export class Alarm {
  readonly #timers: Pick<Timers, "now" | "after" | "cancel">
  readonly #wake: () => void
  #timer: Timer | undefined = undefined
  #wakesAt = Number.POSITIVE_INFINITY
  #isStopped = false

  constructor(timers: Pick<Timers, "now" | "after" | "cancel">, wake: () => void) {
    this.#timers = timers
    this.#wake = wake
  }

  /** Wakes within so many milliseconds. */
  within(wait: number): void {
    const at = this.#timers.now() + wait
    if (at >= this.#wakesAt || this.#isStopped) return
    this.cancel()
    this.#wakesAt = at
    this.#timer = this.#timers.after(wait, () => {
      this.#wakesAt = Number.POSITIVE_INFINITY
      this.#wake()
    })
  }

  /** Does not wake before the next request. */
  cancel(): void {
    this.#timers.cancel(this.#timer)
    this.#wakesAt = Number.POSITIVE_INFINITY
  }

  /** Ignores all later requests. */
  stop(): void {
    this.cancel()
    this.#isStopped = true
  }
}
