/** SIGTERM and Ctrl-C: the first starts a drain, the second ends the program at once. */
import { constants } from "node:os"

const watched = ["SIGINT", "SIGTERM"] as const

export type Signal = (typeof watched)[number]

export interface Signals {
  /** The first signal that came. */
  readonly asked: () => Signal | undefined
  readonly [Symbol.dispose]: () => void
}

export const listen = (onFirst: (signal: Signal) => void): Signals => {
  let asked: Signal | undefined
  const onSignal = (signal: Signal): void => {
    // 130 or 143: a shell reports the same for a process that a signal ended.
    if (asked !== undefined) process.exit(128 + constants.signals[signal])
    asked = signal
    onFirst(signal)
  }
  for (const signal of watched) process.on(signal, onSignal)
  return {
    asked: () => asked,
    [Symbol.dispose]: () => {
      for (const signal of watched) process.off(signal, onSignal)
    }
  }
}
