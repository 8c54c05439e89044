/**
 * Copies that a queue has handed out, by their names. A producer that sends a copy once more, with everything that it has
 * received, makes two messages of one name; from then on that name names nothing, so that neither is taken for the other.
 */
import { BoundedMap } from "@requeue/core/port"

/** See {@link make}. */
export interface HandedOut {
  /**
   * Must be called when the server hands out a copy for the first time; `returns` are those of the copies before it.
   * Answers whether the name still names one message.
   */
  readonly first: (name: string, returns: number) => boolean
  /** Must be called before a copy of the same name is published in place of a message. */
  readonly replacing: (name: string) => void
  /** Must be called when a copy is acknowledged, or what stands for it is stored. */
  readonly settled: (name: string) => void
  /** Whether the copy of this name, which the server hands out again, was settled: it lost the acknowledgement. */
  readonly isSettled: (name: string) => boolean
  readonly isRepeated: (name: string) => boolean
}

interface Known {
  /** The returns before the last copy that was handed out for the first time. */
  returns: number
  /** Copies that this process publishes in its place, and that have not come yet. */
  expected: number
  isSettled: boolean
  isRepeated: boolean
}

/** Names that are remembered: the server delivers copies again if it lost their acknowledgements in a crash. */
const limit = 20_000

/** No copies, at first. */
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
      // Another process has put it in the place of the one that came here.
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
