/** Progress: when a consumer last did something, and when it has nothing left to do. */

/** Records when a consumer last made progress, and calls back once it is idle. */
export class Progress {
  /**
   * The last progress, in monotonic milliseconds: a message arrived at an idle consumer, a handler began, or a batch or a
   * settlement ended.
   */
  last = 0
  readonly #isBusy: () => boolean
  #waiting: Array<() => void> = []

  constructor(isBusy: () => boolean) {
    this.#isBusy = isBusy
  }

  /** Must be called when a run begins, or a message arrives at an idle consumer. */
  begun(now: number): void {
    this.last = now
  }

  /** Must be called when a batch or a settlement has ended, so the consumer may be idle. */
  moved(now: number): void {
    this.last = now
    if (this.#waiting.length > 0) this.#check()
  }

  /** Calls back once nothing is in progress. */
  whenIdle = (callback: () => void): void => {
    this.#waiting.push(callback)
    this.#check()
  }

  #check(): void {
    if (this.#isBusy()) return
    for (const callback of this.#waiting.splice(0)) callback()
  }
}
