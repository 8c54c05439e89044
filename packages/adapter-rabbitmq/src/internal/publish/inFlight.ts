/** A limit of items in flight, by number and by bytes. Those that find no room wait, in order. */
export interface InFlight<A> {
  /** Begins an item, now or when there is room for it. */
  readonly add: (item: A) => void
  /** An item that has begun is over: its room goes to those that wait. */
  readonly end: (item: A) => void
  /** Removes an item that waits; false when it does not. */
  readonly withdraw: (item: A) => boolean
  /** Removes all items that wait, and answers them. */
  readonly drain: () => ReadonlyArray<A>
}

/** Nothing is in flight, at first. One item begins below each limit, however large it is. */
export const make = <A>({
  begin,
  maxBytes,
  maxItems,
  sizeOf
}: {
  readonly begin: (item: A) => void
  readonly maxBytes: number
  readonly maxItems: number
  readonly sizeOf: (item: A) => number
}): InFlight<A> => {
  const waiting = new Set<A>()
  let items = 0
  let bytes = 0
  let isAdmitting = false

  const hasRoom = (): boolean => items < maxItems && bytes < maxBytes

  const admit = (item: A): void => {
    items++
    bytes += sizeOf(item)
    begin(item)
  }

  /** An item that ends as soon as it begins comes back here. It must not start a second loop: stacks are finite. */
  const admitWaiting = (): void => {
    if (isAdmitting) return
    isAdmitting = true
    for (const item of waiting) {
      if (!hasRoom()) break
      waiting.delete(item)
      admit(item)
    }
    isAdmitting = false
  }

  return {
    add: (item) => {
      if (waiting.size === 0 && hasRoom()) admit(item)
      else waiting.add(item)
    },
    end: (item) => {
      items--
      bytes -= sizeOf(item)
      if (waiting.size > 0) admitWaiting()
    },
    withdraw: (item) => waiting.delete(item),
    drain: () => {
      const drained = [...waiting]
      waiting.clear()
      return drained
    }
  }
}
