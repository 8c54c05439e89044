/** Heaps: binary min-heaps. Values with equal keys leave in the order in which they were pushed. */

interface Entry<A> {
  readonly key: number
  readonly order: number
  readonly value: A
}

/** Values by key, lowest first; values with equal keys in the order of `push`. */
export interface Heap<A> {
  readonly size: () => number
  readonly push: (key: number, value: A) => void
  readonly peekKey: () => number | undefined
  readonly pop: () => A | undefined
  /** Removes every value that the predicate rejects. */
  readonly keep: (predicate: (value: A) => boolean) => void
}

const before = <A>(a: Entry<A>, b: Entry<A>): boolean => a.key < b.key || (a.key === b.key && a.order < b.order)

/** Makes an empty heap. */
export const make = <A>(): Heap<A> => {
  let entries: Array<Entry<A>> = []
  let pushed = 0

  const siftDown = (start: number): void => {
    let i = start
    for (;;) {
      const left = 2 * i + 1
      if (left >= entries.length) return
      const right = left + 1
      const child = right < entries.length && before(entries[right]!, entries[left]!) ? right : left
      if (!before(entries[child]!, entries[i]!)) return
      ;[entries[i], entries[child]] = [entries[child]!, entries[i]!]
      i = child
    }
  }

  return {
    size: () => entries.length,
    peekKey: () => entries[0]?.key,
    push: (key, value) => {
      entries.push({ key, order: pushed++, value })
      for (let i = entries.length - 1; i > 0; ) {
        const parent = (i - 1) >> 1
        if (!before(entries[i]!, entries[parent]!)) return
        ;[entries[i], entries[parent]] = [entries[parent]!, entries[i]!]
        i = parent
      }
    },
    pop: () => {
      const top = entries[0]
      const last = entries.pop()
      if (top === undefined || last === undefined) return undefined
      if (entries.length > 0) {
        entries[0] = last
        siftDown(0)
      }
      return top.value
    },
    keep: (predicate) => {
      entries = entries.filter(({ value }) => predicate(value))
      for (let i = (entries.length >> 1) - 1; i >= 0; i--) siftDown(i)
    }
  }
}
