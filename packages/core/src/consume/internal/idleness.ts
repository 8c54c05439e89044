/** Calls back whoever waits for a consumer to become idle. */
export interface Idleness {
  /** Calls back once the consumer is idle, perhaps at once. */
  readonly whenIdle: (callback: () => void) => void
  /** Must be called whenever the consumer may have become idle. */
  readonly check: () => void
}

export const make = (isIdle: () => boolean): Idleness => {
  let waiting: Array<() => void> = []
  const check = (): void => {
    if (waiting.length === 0 || !isIdle()) return
    const callbacks = waiting
    waiting = []
    for (const callback of callbacks) callback()
  }
  return {
    whenIdle: (callback) => {
      waiting.push(callback)
      check()
    },
    check
  }
}
