/** Alarms: one timer for many requests. */
import type { Timer, Timers } from "./Timers.ts"

/** Wakes its owner at the earliest requested time, perhaps without work to do. */
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

  /** Requests a wake-up within `wait` milliseconds. */
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

  /** Cancels all requests so far. */
  cancel(): void {
    this.#timers.cancel(this.#timer)
    this.#wakesAt = Number.POSITIVE_INFINITY
  }

  /** Cancels all requests, and ignores later ones. */
  stop(): void {
    this.cancel()
    this.#isStopped = true
  }
}
