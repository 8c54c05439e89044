/**
 * Names of copies that a queue has delivered. A producer that resends a copy with all its headers creates two messages
 * with one name. From then on the name identifies neither of them.
 */
import { BoundedMap } from "@requeue/core/port"

/** The functions that {@link make} returns. */
export interface HandedOut {
  /**
   * Must be called when the server delivers a copy for the first time; `returns` counts the returns of the copies
   * before it. Returns whether the name still identifies one message.
   */
  readonly first: (name: string, returns: number) => boolean
  /** Must be called before a copy with the same name is published to replace a message. */
  readonly replacing: (name: string) => void
  /** Must be called when a copy is acked, or its replacement is stored. */
  readonly settled: (name: string) => void
  /** Whether the redelivered copy of this name was settled, so the server lost its ack. */
  readonly isSettled: (name: string) => boolean
  readonly isRepeated: (name: string) => boolean
}

interface Known {
  /** The returns before the latest copy at its first delivery. */
  returns: number
  /** Replacements that this process publishes and that have not arrived yet. */
  expected: number
  isSettled: boolean
  isRepeated: boolean
}

/** Names to remember. After a crash the server redelivers copies whose acks it lost. */
const limit = 20_000

/** Starts without names. */
export const make = (): HandedOut => {
  const names = BoundedMap.make<Known>(limit)

  const know = (name: string, change: (known: Known) => void): void => {
    let known = names.get(name)
    if (known === undefined)
      names.set(name, (known = { returns: -1, expected: 0, isSettled: false, isRepeated: false }))
    change(known)
  }

  return {
    first: (name, returns) => {
      const known = names.get(name)
      if (known?.isRepeated === true) return false
      const isExpected = known !== undefined && known.expected > 0
      // Another process published a replacement for the copy that this process received.
      const isLater = known === undefined || (returns > known.returns && !known.isSettled)
      know(name, (it) => {
        if (isExpected) it.expected--
        it.returns = returns
        it.isRepeated = !isExpected && !isLater
      })
      return isExpected || isLater
    },
    replacing: (name) => know(name, (it) => it.expected++),
    settled: (name) => know(name, (it) => (it.isSettled = true)),
    isSettled: (name) => {
      const known = names.get(name)
      return known?.isSettled === true && !known.isRepeated
    },
    isRepeated: (name) => names.get(name)?.isRepeated === true
  }
}
