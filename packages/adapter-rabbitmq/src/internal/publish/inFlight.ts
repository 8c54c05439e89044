/** Limits the items in flight, by number and by bytes. Further items wait, in order. */
export interface InFlight<A> {
  /** Starts an item now, or when the limits allow it. */
  readonly add: (item: A) => void
  /** Ends a started item, which may start waiting ones. */
  readonly end: (item: A) => void
  /** Removes a waiting item; false if it does not wait. */
  readonly withdraw: (item: A) => boolean
  /** Removes and returns all waiting items. */
  readonly drain: () => ReadonlyArray<A>
}

/** Has nothing in flight at first. While both limits are not reached, one more item starts, however large it is. */
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

  /** An item that ends while it starts calls this again. It must not start a second loop, or the stack would overflow. */
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
