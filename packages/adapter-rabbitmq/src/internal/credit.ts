/**
 * Credit on a channel: consumers with a prefetch each, whose sum, with what cancelled consumers left unsettled, never
 * exceeds the credit.
 *
 * A prefetch cannot be changed under a consumer, and quorum queues have none per channel. So less credit cancels the
 * consumers, and more credit adds one with the difference. A cancel is written before any settlement that is given
 * later, on the same channel, so that the server acts in this order.
 */
export interface Credit {
  readonly set: (limit: number) => void
  /** A delivery of this consumer has come. */
  readonly arrived: (consumer: string) => void
  /** A delivery of this consumer is settled. */
  readonly settled: (consumer: string) => void
  /** Done when lowered credit has been written; `undefined` when it has been already. */
  readonly barrier: () => Promise<void> | undefined
  /** The channel is gone. */
  readonly end: () => void
}

export interface Operations {
  /** A fresh consumer; its name is chosen here, so that a delivery can be told apart before the answer comes. */
  readonly consume: (consumer: string, prefetch: number) => Promise<unknown>
  readonly cancel: (consumer: string) => Promise<unknown>
  readonly name: () => string
}

/** The largest prefetch of AMQP. */
const most = 65_535

export const make = ({ cancel, consume, name }: Operations): Credit => {
  const prefetch = new Map<string, number>()
  const unsettled = new Map<string, number>()
  let limit = 0
  let isBusy = false
  let hasEnded = false
  /** Cancels stand in the driver's queue behind the answer to another one. */
  let isUnwritten = false
  let waiters: Array<() => void> = []

  const orphans = (): number => {
    let sum = 0
    for (const [consumer, count] of unsettled) if (!prefetch.has(consumer)) sum += count
    return sum
  }

  const granted = (): number => [...prefetch.values()].reduce((sum, each) => sum + each, 0)

  const isTooMuch = (): boolean => prefetch.size > 0 && granted() + orphans() > limit

  const run = (operation: Promise<unknown>): void => {
    isBusy = true
    // A refused operation closes the channel, and the channel's end is what the subscription acts on.
    const after = () => {
      isBusy = false
      isUnwritten = false
      pump()
    }
    operation.then(after, after)
  }

  const release = (): void => {
    if (!hasEnded && (isUnwritten || isTooMuch())) return
    const resumed = waiters
    waiters = []
    for (const resume of resumed) resume()
  }

  const pump = (): void => {
    if (isBusy || hasEnded) return
    if (isTooMuch()) {
      const consumers = [...prefetch.keys()]
      prefetch.clear()
      // The driver writes one request at a time, so with several the last is written after the answers to the others.
      isUnwritten = consumers.length > 1
      run(Promise.all(consumers.map(cancel)))
      return release()
    }
    release()
    const left = orphans()
    const gap = Math.min(limit, most) - granted() - left
    // Few consumers: one at a time for every settled orphan would be many.
    if (gap <= 0 || !(prefetch.size === 0 || left === 0 || gap * 2 >= limit)) return
    const consumer = name()
    prefetch.set(consumer, gap)
    run(consume(consumer, gap))
  }

  return {
    set: (wanted) => {
      limit = wanted
      pump()
    },
    arrived: (consumer) => {
      unsettled.set(consumer, (unsettled.get(consumer) ?? 0) + 1)
    },
    settled: (consumer) => {
      const count = (unsettled.get(consumer) ?? 0) - 1
      if (count > 0) unsettled.set(consumer, count)
      else unsettled.delete(consumer)
      if (!prefetch.has(consumer)) pump()
    },
    barrier: () =>
      hasEnded || !(isUnwritten || isTooMuch()) ? undefined : new Promise((resume) => waiters.push(resume)),
    end: () => {
      hasEnded = true
      release()
    }
  }
}
